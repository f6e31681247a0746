// Reshape and its like as copies: for where no view can be had.
#include "families.h"
#include "move.h"

namespace tessera::native {

using plugin::Node;
using plugin::ProposeContext;

namespace {

void offer_copy(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_immovable(node)) return context.refuse(node.id(), *reason);
  const Arrangement source = arrange(TESSERA_LAYOUT_DEFAULT, node.input(0).type().dims);
  Move move;
  move.strides = source.strides;
  for (size_t axis = 0; axis < source.dims.size(); ++axis) {
    move.axes.push_back({.count = source.dims[axis],
                         .input_axis = static_cast<int>(axis),
                         .to = source.strides[axis]});
  }
  offer_moves(
      context, node,
      {.inputs = {node.input(0)}, .outputs = {node.output(0)}, .moves = {move}, .is_same = true});
}

}  // namespace

void propose_reshapes(ProposeContext& context) {
  context.for_each({"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"},
                   [&](const Node& node) { offer_copy(context, node); });
}

}  // namespace tessera::native
