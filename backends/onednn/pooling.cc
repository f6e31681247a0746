#include "families.h"

namespace tessera::onednn {

void propose_poolings(Context& context) {
  context.for_each({"AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool"},
                   [&](const plugin::Node& node) {
                     context.refuse(node.id(), "has no shape that oneDNN knows");
                   });
}

}  // namespace tessera::onednn
