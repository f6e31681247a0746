// Reshape and similar ops as copies, for use if a view is not possible.
#include "base/families.h"
#include "copy/copy_offer.h"

namespace tessera::native {

using plugin::Node;
using plugin::ProposeContext;

namespace {

// The elements of the input in row-major order.
void describe_dense_copy(const CopyPorts& ports, const AddCopy& add) {
  const StorageAxes from = ports.input(0);
  PortCopy port_copy;
  int64_t to = 1;
  for (size_t axis = from.count; axis-- > 0;) {
    port_copy.nest.add(from[axis].dim, from[axis].stride, to);
    to *= from[axis].dim;
  }
  add(port_copy);
}

void offer_copy(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_uncopyable(node)) return context.refuse(node.id(), *reason);
  offer_copies(context, node,
               {.inputs = {node.input(0)},
                .outputs = {node.output(0)},
                .describe = describe_dense_copy,
                .is_same = true});
}

}  // namespace

void propose_reshapes(ProposeContext& context) {
  context.for_each({"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"},
                   [&](const Node& node) { offer_copy(context, node); });
}

}  // namespace tessera::native
