// Expand and Tile: the same elements again and again.
#include <vector>

#include "families.h"
#include "move.h"

namespace tessera::native {

using plugin::Node;
using plugin::ProposeContext;

namespace {

void offer_move(ProposeContext& context, const Node& node, const Move& move) {
  offer_moves(context, node,
              {.inputs = {node.input(0)}, .outputs = {node.output(0)}, .moves = {move}});
}

void offer_expand(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_immovable(node)) return context.refuse(node.id(), *reason);
  const std::vector<int64_t> from = node.input(0).type().dims;
  const std::vector<int64_t> to = node.output(0).type().dims;
  const Arrangement target = arrange(TESSERA_LAYOUT_DEFAULT, to);
  const size_t added = to.size() - from.size();
  Move move;
  move.strides = arrange(TESSERA_LAYOUT_DEFAULT, from).strides;
  for (size_t axis = 0; axis < to.size(); ++axis) {
    const bool is_repeated = axis < added || from[axis - added] == 1;
    move.axes.push_back({.count = to[axis],
                         .input_axis = is_repeated ? -1 : static_cast<int>(axis - added),
                         .to = target.strides[axis]});
  }
  offer_move(context, node, move);
}

void offer_tile(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_immovable(node)) return context.refuse(node.id(), *reason);
  const std::vector<int64_t> from = node.input(0).type().dims;
  const std::vector<int64_t> to = node.output(0).type().dims;
  const Arrangement target = arrange(TESSERA_LAYOUT_DEFAULT, to);
  Move move;
  move.strides = arrange(TESSERA_LAYOUT_DEFAULT, from).strides;
  for (size_t axis = 0; axis < to.size(); ++axis) {
    const int64_t repeats = from[axis] == 0 ? 0 : to[axis] / from[axis];
    move.axes.push_back({.count = repeats, .to = from[axis] * target.strides[axis]});
    move.axes.push_back(
        {.count = from[axis], .input_axis = static_cast<int>(axis), .to = target.strides[axis]});
  }
  offer_move(context, node, move);
}

}  // namespace

void propose_repeats(ProposeContext& context) {
  context.for_each({"Expand"}, [&](const Node& node) { offer_expand(context, node); });
  context.for_each({"Tile"}, [&](const Node& node) { offer_tile(context, node); });
}

}  // namespace tessera::native
