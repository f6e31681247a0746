// Reshape and similar ops as copies, for use if a view is not possible.
#include "base/families.h"
#include "copy/copy_offer.h"

namespace tessera::native {

using plugin::Node;
using plugin::ProposeContext;

namespace {

void offer_copy(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_uncopyable(node)) return context.refuse(node.id(), *reason);
  const StridedLayout source = strided_layout(TESSERA_LAYOUT_DEFAULT, node.input(0).type().dims);
  PortCopy port_copy;
  port_copy.strides = source.strides;
  for (size_t axis = 0; axis < source.dims.size(); ++axis) {
    port_copy.axes.push_back({.count = source.dims[axis],
                              .input_axis = static_cast<int>(axis),
                              .to = source.strides[axis]});
  }
  offer_copies(context, node,
               {.inputs = {node.input(0)},
                .outputs = {node.output(0)},
                .port_copies = {port_copy},
                .is_same = true});
}

}  // namespace

void propose_reshapes(ProposeContext& context) {
  context.for_each({"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"},
                   [&](const Node& node) { offer_copy(context, node); });
}

}  // namespace tessera::native
