// Slice with constant ranges, in each layout in which the range of channels is whole blocks.
#include <optional>
#include <string>
#include <vector>

#include "base/families.h"
#include "copy/copy_offer.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Node;
using plugin::ProposeContext;
using plugin::SliceRange;

namespace {

// The range along each axis of the input; nullopt if one is known only at run time.
std::optional<std::vector<SliceRange>> ranges_of(const Node& node) {
  const std::optional<plugin::SliceLists> lists = plugin::slice_lists(node);
  if (!lists || !lists->ends) return std::nullopt;
  const std::vector<int64_t> dims = node.input(0).type().dims;
  std::vector<SliceRange> ranges;
  for (const int64_t dim : dims) ranges.push_back({0, 1, dim});
  for (size_t index = 0; index < lists->starts.size(); ++index) {
    const size_t axis = plugin::normalized_axis(lists->axes[index], dims.size());
    ranges[axis] = plugin::slice_range(dims[axis], lists->starts[index], (*lists->ends)[index],
                                       lists->steps[index]);
  }
  return ranges;
}

// The ranges in blocks of channels; nullopt if they are not whole blocks.
std::optional<std::vector<SliceRange>> ranges_in(const StridedLayout& source,
                                                 std::vector<SliceRange> ranges, int64_t channels) {
  if (source.block == 1) return ranges;
  SliceRange& along = ranges[1];
  const int64_t end = along.start + along.count;
  const bool is_whole = along.step == 1 && along.start % source.block == 0 &&
                        (end % source.block == 0 || end == channels);
  if (!is_whole) return std::nullopt;
  along = {along.start / source.block, 1, (along.count + source.block - 1) / source.block};
  ranges.push_back({0, 1, source.block});
  return ranges;
}

void offer_slice(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_uncopyable(node)) return context.refuse(node.id(), *reason);
  const auto ranges = ranges_of(node);
  if (!ranges) return context.refuse(node.id(), "takes starts, ends, axes and steps as constants");
  const plugin::Type from = node.input(0).type();
  for (const std::string& layout : kSharedLayouts) {
    if (layout != TESSERA_LAYOUT_DEFAULT && !has_channels(from)) break;
    const StridedLayout source = strided_layout(layout, from.dims);
    const StridedLayout target = strided_layout(layout, node.output(0).type().dims);
    const auto laid_out = ranges_in(source, *ranges, from.dims.size() > 1 ? from.dims[1] : 0);
    if (!laid_out) continue;
    PortCopy port_copy;
    port_copy.strides = source.strides;
    for (size_t axis = 0; axis < laid_out->size(); ++axis) {
      const SliceRange& range = (*laid_out)[axis];
      port_copy.starts.push_back(range.start);
      port_copy.axes.push_back({.count = range.count,
                                .input_axis = static_cast<int>(axis),
                                .step = range.step,
                                .to = target.strides[axis]});
    }
    offer_copies(context, node,
                 {.input_layout = layout,
                  .output_layout = layout,
                  .inputs = {node.input(0)},
                  .outputs = {node.output(0)},
                  .port_copies = {port_copy}});
  }
}

}  // namespace

void propose_slices(ProposeContext& context) {
  context.for_each({"Slice"}, [&](const Node& node) { offer_slice(context, node); });
}

}  // namespace tessera::native
