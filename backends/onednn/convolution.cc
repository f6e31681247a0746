#include "families.h"

namespace tessera::onednn {

void propose_convolutions(Context& context) {
  context.for_each({"Conv", "ConvTranspose"}, [&](const plugin::Node& node) {
    context.refuse(node.id(), "has no shape that oneDNN knows");
  });
}

}  // namespace tessera::onednn
