// Expand and Tile: copies that repeat elements.
#include <vector>

#include "base/families.h"
#include "copy/copy_offer.h"

namespace tessera::native {

using plugin::Node;
using plugin::ProposeContext;

namespace {

void offer_copy(ProposeContext& context, const Node& node, const PortCopy& port_copy) {
  offer_copies(
      context, node,
      {.inputs = {node.input(0)}, .outputs = {node.output(0)}, .port_copies = {port_copy}});
}

void offer_expand(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_uncopyable(node)) return context.refuse(node.id(), *reason);
  const std::vector<int64_t> from = node.input(0).type().dims;
  const std::vector<int64_t> to = node.output(0).type().dims;
  const StridedLayout target = strided_layout(TESSERA_LAYOUT_DEFAULT, to);
  const size_t added = to.size() - from.size();
  PortCopy port_copy;
  port_copy.strides = strided_layout(TESSERA_LAYOUT_DEFAULT, from).strides;
  for (size_t axis = 0; axis < to.size(); ++axis) {
    const bool is_repeated = axis < added || from[axis - added] == 1;
    port_copy.axes.push_back({.count = to[axis],
                              .input_axis = is_repeated ? -1 : static_cast<int>(axis - added),
                              .to = target.strides[axis]});
  }
  offer_copy(context, node, port_copy);
}

void offer_tile(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_uncopyable(node)) return context.refuse(node.id(), *reason);
  const std::vector<int64_t> from = node.input(0).type().dims;
  const std::vector<int64_t> to = node.output(0).type().dims;
  const StridedLayout target = strided_layout(TESSERA_LAYOUT_DEFAULT, to);
  PortCopy port_copy;
  port_copy.strides = strided_layout(TESSERA_LAYOUT_DEFAULT, from).strides;
  for (size_t axis = 0; axis < to.size(); ++axis) {
    const int64_t repeats = from[axis] == 0 ? 0 : to[axis] / from[axis];
    port_copy.axes.push_back({.count = repeats, .to = from[axis] * target.strides[axis]});
    port_copy.axes.push_back(
        {.count = from[axis], .input_axis = static_cast<int>(axis), .to = target.strides[axis]});
  }
  offer_copy(context, node, port_copy);
}

}  // namespace

void propose_expands(ProposeContext& context) {
  context.for_each({"Expand"}, [&](const Node& node) { offer_expand(context, node); });
  context.for_each({"Tile"}, [&](const Node& node) { offer_tile(context, node); });
}

}  // namespace tessera::native
