// DepthToSpace and SpaceToDepth, in row-major order and with channels last. In mode DCR, the row
// and column within a block are the outer part of the channel index, in mode CRD the inner part.
#include <string>

#include "base/families.h"
#include "copy/copy_offer.h"

namespace tessera::native {

using plugin::Node;
using plugin::ProposeContext;

namespace {

constexpr size_t kChannel = 1;
constexpr size_t kRow = 2;
constexpr size_t kColumn = 3;

struct BlockCopy {
  int64_t block = 1;
  bool is_to_space = true;
  bool is_inner = false;  // mode CRD

  void describe(const CopyPorts& ports, const AddCopy& add) const {
    const StorageAxes from = ports.input(0);
    const StorageAxes to = ports.output(0);
    const StorageAxes& deep = is_to_space ? from : to;  // has more channels
    const StorageAxes& flat = is_to_space ? to : from;
    const int64_t depth = flat[kChannel].dim;
    PortCopy port_copy;
    // An axis with these strides in both tensors.
    const auto add_axis = [&](int64_t count, int64_t in_deep, int64_t in_flat) {
      port_copy.nest.add(count, is_to_space ? in_deep : in_flat, is_to_space ? in_flat : in_deep);
    };
    const int64_t channel = deep[kChannel].stride;
    add_axis(deep[0].dim, deep[0].stride, flat[0].stride);
    add_axis(depth, channel * (is_inner ? block * block : 1), flat[kChannel].stride);
    add_axis(block, channel * block * (is_inner ? 1 : depth), flat[kRow].stride);
    add_axis(block, channel * (is_inner ? 1 : depth), flat[kColumn].stride);
    for (const size_t axis : {kRow, kColumn}) {
      add_axis(deep[axis].dim, deep[axis].stride, flat[axis].stride * block);
    }
    add(port_copy);
  }
};

void offer_blocks(ProposeContext& context, const Node& node, bool is_to_space) {
  if (const auto reason = explain_uncopyable(node)) return context.refuse(node.id(), *reason);
  const BlockCopy copy = {.block = node.attributes().get_int("blocksize"),
                          .is_to_space = is_to_space,
                          .is_inner = node.attributes().get_string("mode") == "CRD"};
  for (const char* layout : {TESSERA_LAYOUT_DEFAULT, "nhwc"}) {
    if (layout == std::string("nhwc") && !has_channels(node.input(0).type())) continue;
    offer_copies(context, node,
                 {.input_layout = layout,
                  .output_layout = layout,
                  .inputs = {node.input(0)},
                  .outputs = {node.output(0)},
                  .describe = [copy](const CopyPorts& ports, const AddCopy& add) {
                    copy.describe(ports, add);
                  }});
  }
}

}  // namespace

void propose_depth_to_space(ProposeContext& context) {
  context.for_each({"DepthToSpace"}, [&](const Node& node) { offer_blocks(context, node, true); });
  context.for_each({"SpaceToDepth"}, [&](const Node& node) { offer_blocks(context, node, false); });
}

}  // namespace tessera::native
