// DepthToSpace and SpaceToDepth, in row-major order and with channels last. In mode DCR, the row
// and column within a block are the outer part of the channel index, in mode CRD the inner part.
#include <string>
#include <vector>

#include "base/families.h"
#include "copy/copy_offer.h"

namespace tessera::native {

using plugin::Node;
using plugin::ProposeContext;

namespace {

constexpr int kChannel = 1;
constexpr int kRow = 2;
constexpr int kColumn = 3;

// Strides among the channels of the tensor with more channels.
struct DepthSteps {
  int64_t depth = 1;
  int64_t row = 1;
  int64_t column = 1;
};

DepthSteps depth_steps(const Node& node, int64_t depth, int64_t block) {
  if (node.attributes().get_string("mode") == "CRD") return {block * block, block, 1};
  return {1, block * depth, depth};
}

void offer_blocks(ProposeContext& context, const Node& node, bool is_to_space) {
  if (const auto reason = explain_uncopyable(node)) return context.refuse(node.id(), *reason);
  const plugin::Type from = node.input(0).type();
  const plugin::Type to = node.output(0).type();
  const int64_t block = node.attributes().get_int("blocksize");
  const plugin::Type& deep = is_to_space ? from : to;
  const int64_t depth = (is_to_space ? to : from).dims[kChannel];
  const DepthSteps steps = depth_steps(node, depth, block);
  for (const char* layout : {TESSERA_LAYOUT_DEFAULT, "nhwc"}) {
    if (layout == std::string("nhwc") && !has_channels(from)) continue;
    const StridedLayout target = strided_layout(layout, to.dims);
    PortCopy port_copy;
    port_copy.strides = strided_layout(layout, from.dims).strides;
    port_copy.axes.push_back({.count = from.dims[0], .input_axis = 0, .to = target.strides[0]});
    // An axis along the channels of the tensor with more channels, and the spatial axis that it
    // becomes.
    const auto add = [&](int64_t count, int64_t channels, int axis, int64_t positions) {
      const int input_axis = is_to_space ? kChannel : axis;
      const int output_axis = is_to_space ? axis : kChannel;
      port_copy.axes.push_back({.count = count,
                                .input_axis = input_axis,
                                .step = is_to_space ? channels : positions,
                                .to = (is_to_space ? positions : channels) *
                                      target.strides[static_cast<size_t>(output_axis)]});
    };
    const auto add_plane = [&](int axis) {
      port_copy.axes.push_back(
          {.count = deep.dims[static_cast<size_t>(axis)],
           .input_axis = axis,
           .step = is_to_space ? 1 : block,
           .to = (is_to_space ? block : 1) * target.strides[static_cast<size_t>(axis)]});
    };
    add(depth, steps.depth, kChannel, 1);
    add(block, steps.row, kRow, 1);
    add(block, steps.column, kColumn, 1);
    add_plane(kRow);
    add_plane(kColumn);
    offer_copies(context, node,
                 {.input_layout = layout,
                  .output_layout = layout,
                  .inputs = {node.input(0)},
                  .outputs = {node.output(0)},
                  .port_copies = {port_copy}});
  }
}

}  // namespace

void propose_depth_to_space(ProposeContext& context) {
  context.for_each({"DepthToSpace"}, [&](const Node& node) { offer_blocks(context, node, true); });
  context.for_each({"SpaceToDepth"}, [&](const Node& node) { offer_blocks(context, node, false); });
}

}  // namespace tessera::native
