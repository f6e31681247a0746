// Transpose, in row-major order and from and to channels-last, where it often changes nothing.
#include <string>
#include <utility>
#include <vector>

#include "families.h"
#include "move.h"

namespace tessera::native {

using plugin::Node;
using plugin::ProposeContext;

namespace {

std::vector<int64_t> axis_order(const Node& node, size_t rank) {
  std::vector<int64_t> order = node.attributes().get_ints("perm");
  if (!order.empty()) return order;
  for (size_t axis = rank; axis-- > 0;) order.push_back(static_cast<int64_t>(axis));
  return order;
}

void offer_transpose(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_immovable(node)) return context.refuse(node.id(), *reason);
  const plugin::Type from = node.input(0).type();
  const plugin::Type to = node.output(0).type();
  const std::vector<int64_t> order = axis_order(node, from.dims.size());
  std::vector<std::pair<const char*, const char*>> layouts = {
      {TESSERA_LAYOUT_DEFAULT, TESSERA_LAYOUT_DEFAULT}};
  if (has_channels(from)) {
    layouts.emplace_back("nhwc", TESSERA_LAYOUT_DEFAULT);
    layouts.emplace_back(TESSERA_LAYOUT_DEFAULT, "nhwc");
  }
  for (const auto& [input_layout, output_layout] : layouts) {
    const Arrangement source = arrange(input_layout, from.dims);
    const Arrangement target = arrange(output_layout, to.dims);
    Move move;
    move.strides = source.strides;
    for (size_t axis = 0; axis < order.size(); ++axis) {
      move.axes.push_back({.count = to.dims[axis],
                           .input_axis = static_cast<int>(order[axis]),
                           .to = target.strides[axis]});
    }
    offer_moves(context, node,
                {.input_layout = input_layout,
                 .output_layout = output_layout,
                 .inputs = {node.input(0)},
                 .outputs = {node.output(0)},
                 .moves = {move}});
  }
}

}  // namespace

void propose_transposes(ProposeContext& context) {
  context.for_each({"Transpose"}, [&](const Node& node) { offer_transpose(context, node); });
}

}  // namespace tessera::native
