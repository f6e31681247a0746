// Slice with known ranges, in each layout in which the ranges of channels are whole blocks.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "families.h"
#include "move.h"

namespace tessera::native {

using plugin::Node;
using plugin::ProposeContext;

namespace {

constexpr int32_t kFirstInputVersion = 10;

// The elements start, start + step, ... of one axis.
struct Range {
  int64_t start = 0;
  int64_t step = 1;
  int64_t count = 0;
};

Range range_of(int64_t dim, int64_t start, int64_t end, int64_t step) {
  if (dim == 0) return {};
  // The smallest step has no positive counterpart; both of them take one element at most.
  step = std::max(step, -std::numeric_limits<int64_t>::max());
  if (start < 0) start += dim;
  if (end < 0) end += dim;
  if (step > 0) {
    start = std::clamp<int64_t>(start, 0, dim);
    end = std::clamp<int64_t>(end, 0, dim);
    const int64_t count = end > start ? (end - start - 1) / step + 1 : 0;
    // Where nothing or one element is taken, the step is never made.
    return {count == 0 ? 0 : start, count > 1 ? step : 1, count};
  }
  start = std::clamp<int64_t>(start, 0, dim - 1);
  end = std::clamp<int64_t>(end, -1, dim - 1);
  const int64_t count = start > end ? (start - end - 1) / -step + 1 : 0;
  return {start, count > 1 ? step : 1, count};
}

// The range along each axis of the input; nullopt where something is only known when run.
std::optional<std::vector<Range>> ranges_of(const Node& node) {
  const std::vector<int64_t> dims = node.input(0).type().dims;
  std::optional<std::vector<int64_t>> starts;
  std::optional<std::vector<int64_t>> ends;
  std::optional<std::vector<int64_t>> axes = std::vector<int64_t>();
  std::optional<std::vector<int64_t>> steps = std::vector<int64_t>();
  if (node.version() < kFirstInputVersion) {
    starts = node.attributes().get_ints("starts");
    ends = node.attributes().get_ints("ends");
    axes = node.attributes().get_ints("axes");
  } else {
    starts = known_integers(node.input(1));
    ends = known_integers(node.input(2));
    if (node.input(3).is_present()) axes = known_integers(node.input(3));
    if (node.input(4).is_present()) steps = known_integers(node.input(4));
  }
  if (!starts || !ends || !axes || !steps) return std::nullopt;
  std::vector<Range> ranges;
  for (const int64_t dim : dims) ranges.push_back({0, 1, dim});
  for (size_t index = 0; index < starts->size(); ++index) {
    const size_t axis = axes->empty() ? index : normalized_axis((*axes)[index], dims.size());
    ranges[axis] = range_of(dims[axis], (*starts)[index], (*ends)[index],
                            steps->empty() ? 1 : (*steps)[index]);
  }
  return ranges;
}

// The ranges as they are in blocks of channels; nullopt where they are not.
std::optional<std::vector<Range>> ranges_in(const Arrangement& source, std::vector<Range> ranges,
                                            int64_t channels) {
  if (source.block == 1) return ranges;
  Range& along = ranges[1];
  const int64_t end = along.start + along.count;
  const bool is_whole = along.step == 1 && along.start % source.block == 0 &&
                        (end % source.block == 0 || end == channels);
  if (!is_whole) return std::nullopt;
  along = {along.start / source.block, 1, (along.count + source.block - 1) / source.block};
  ranges.push_back({0, 1, source.block});
  return ranges;
}

void offer_slice(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_immovable(node)) return context.refuse(node.id(), *reason);
  const auto ranges = ranges_of(node);
  if (!ranges) return context.refuse(node.id(), "takes starts, ends, axes and steps as constants");
  const plugin::Type from = node.input(0).type();
  for (const std::string& layout : kSharedLayouts) {
    if (layout != TESSERA_LAYOUT_DEFAULT && !has_channels(from)) break;
    const Arrangement source = arrange(layout, from.dims);
    const Arrangement target = arrange(layout, node.output(0).type().dims);
    const auto arranged = ranges_in(source, *ranges, from.dims.size() > 1 ? from.dims[1] : 0);
    if (!arranged) continue;
    Move move;
    move.strides = source.strides;
    for (size_t axis = 0; axis < arranged->size(); ++axis) {
      const Range& range = (*arranged)[axis];
      move.starts.push_back(range.start);
      move.axes.push_back({.count = range.count,
                           .input_axis = static_cast<int>(axis),
                           .step = range.step,
                           .to = target.strides[axis]});
    }
    offer_moves(context, node,
                {.input_layout = layout,
                 .output_layout = layout,
                 .inputs = {node.input(0)},
                 .outputs = {node.output(0)},
                 .moves = {move}});
  }
}

}  // namespace

void propose_slices(ProposeContext& context) {
  context.for_each({"Slice"}, [&](const Node& node) { offer_slice(context, node); });
}

}  // namespace tessera::native
