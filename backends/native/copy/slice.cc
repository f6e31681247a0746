// Slice, in each layout in which the range of channels is whole blocks. The counts of elements are
// the dimensions of the output; the starts are constants, or read in each run.
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/families.h"
#include "base/indices.h"
#include "copy/copy_offer.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Node;
using plugin::ProposeContext;

namespace {

// The first port after that of the data.
constexpr int kStartsPort = 1;

// The elements start, start + step, ... of one axis.
struct AxisRange {
  int64_t start = 0;  // of the model: may be negative or out of range
  int64_t step = 1;
  int64_t position = -1;  // of the start in port kStartsPort, if it is read there
};

// What a Slice selects from tensors of any sizes.
struct Selection {
  std::vector<AxisRange> ranges;  // by axis of the input
  bool reads_starts = false;
  bool has_constant_ends = false;
};

// The first of `count` selected elements of an axis of `size` elements, clamped as ONNX defines.
// Throws Failure (TESSERA_INVALID_ARGUMENT) if not all of them are elements of the axis.
int64_t first_of(const AxisRange& range, int64_t size, int64_t count) {
  if (count == 0) return 0;
  // -INT64_MIN is not an int64. Either step selects one element at most.
  const int64_t step = std::max(range.step, -std::numeric_limits<int64_t>::max());
  const int64_t start = range.start < 0 ? range.start + size : range.start;
  const int64_t first = std::clamp<int64_t>(start, 0, std::max<int64_t>(0, size - 1));
  const int64_t steps_left = (step > 0 ? size - 1 - first : first) / std::abs(step);
  const bool is_outside = size == 0 || (step > 0 && start >= size) || count - 1 > steps_left;
  if (is_outside) {
    throw plugin::Failure(TESSERA_INVALID_ARGUMENT, "expected a range in an axis of " +
                                                        std::to_string(size) + " elements, found " +
                                                        std::to_string(count) + " from " +
                                                        std::to_string(range.start) + " on");
  }
  return first;
}

void describe_slice(const Selection& selection, const CopyPorts& ports, const AddCopy& add) {
  const StorageAxes from = ports.input(0);
  const StorageAxes to = ports.output(0);
  const Buffer* starts = selection.reads_starts ? &ports.input_buffer(kStartsPort) : nullptr;
  PortCopy port_copy;
  for (size_t axis = 0; axis < selection.ranges.size(); ++axis) {
    AxisRange range = selection.ranges[axis];
    const int64_t count = ports.output_buffer(0).dims[axis];
    if (range.position >= 0) {
      // Before the run any start will do from which the elements are in range.
      const int64_t any_start = range.step > 0 ? 0 : -1;
      range.start = starts->is_present() ? Indices(*starts)[range.position] : any_start;
    }
    const int64_t first = first_of(range, ports.input_buffer(0).dims[axis], count);
    const int64_t block = axis == 1 ? from.block : 1;
    port_copy.from_offset += first / block * from[axis].stride;
    // The step of a single element may be any number.
    port_copy.nest.add(to[axis].dim, from[axis].stride * (count > 1 ? range.step : 1),
                       to[axis].stride);
  }
  if (from.block > 1) port_copy.nest.add(from.block, 1, 1);
  add(port_copy);
}

// The list of an input that is constant or left out; nullopt if it is known only in the run.
std::optional<std::vector<int64_t>> list_of(const plugin::Value& value) {
  return value.is_present() ? plugin::constant_integers(value) : std::vector<int64_t>();
}

// Starts that are read in the run, with constant axes and steps.
std::optional<plugin::SliceLists> lists_without_starts(const Node& node) {
  const plugin::Value starts = node.input(1);
  auto axes = list_of(node.input(3));
  auto steps = list_of(node.input(4));
  // If the data says where it is sliced, it has no port for that.
  const bool is_readable = starts.is_present() && !starts.is_constant() &&
                           starts.type().is_known() && is_index_type(starts.type().data_type) &&
                           starts.id() != node.input(0).id();
  if (!is_readable || !axes || !steps) return std::nullopt;
  const auto count = static_cast<size_t>(starts.type().elements());
  plugin::SliceLists lists = {.starts = std::vector<int64_t>(count),
                              .ends = std::nullopt,
                              .axes = *std::move(axes),
                              .steps = *std::move(steps)};
  if (lists.axes.empty()) {
    lists.axes.resize(count);
    std::iota(lists.axes.begin(), lists.axes.end(), int64_t{0});
  }
  if (lists.steps.empty()) lists.steps.assign(count, 1);
  const bool is_whole = lists.axes.size() == count && lists.steps.size() == count;
  return is_whole ? std::optional(std::move(lists)) : std::nullopt;
}

// nullopt if something besides starts and ends is known only in the run.
std::optional<Selection> selection_of(const Node& node) {
  Selection selection;
  std::optional<plugin::SliceLists> lists = plugin::slice_lists(node);
  if (!lists) {
    lists = lists_without_starts(node);
    selection.reads_starts = true;
  }
  if (!lists) return std::nullopt;
  selection.has_constant_ends = lists->ends.has_value();
  const size_t rank = node.input(0).type().dims.size();
  selection.ranges.resize(rank);
  for (size_t index = 0; index < lists->starts.size(); ++index) {
    AxisRange& range = selection.ranges[plugin::normalized_axis(lists->axes[index], rank)];
    range = {.start = lists->starts[index], .step = lists->steps[index]};
    if (selection.reads_starts) range.position = static_cast<int64_t>(index);
  }
  return selection;
}

// Whether the channels that are selected are whole blocks, whatever a run passes.
bool selects_blocks(const Selection& selection, int64_t from, int64_t to, int64_t block) {
  if (selection.reads_starts || !selection.has_constant_ends) return false;
  const AxisRange& range = selection.ranges[1];
  const int64_t start = first_of(range, from, to);
  const int64_t end = start + to;
  return (range.step == 1 || to <= 1) && start % block == 0 && (end % block == 0 || end == from);
}

void offer_slice(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_uncopyable(node)) return context.refuse(node.id(), *reason);
  const auto selection = selection_of(node);
  if (!selection) return context.refuse(node.id(), "takes axes and steps as constants");
  const plugin::Type from = node.input(0).type();
  for (const std::string& layout : kSharedLayouts) {
    if (layout != TESSERA_LAYOUT_DEFAULT && !has_channels(from)) break;
    CopyOffer offer = {.input_layout = layout,
                       .output_layout = layout,
                       .inputs = {node.input(0)},
                       .outputs = {node.output(0)},
                       .describe =
                           [selection = *selection](const CopyPorts& ports, const AddCopy& add) {
                             describe_slice(selection, ports, add);
                           },
                       .reads_ports = selection->reads_starts};
    if (selection->reads_starts) offer.built_for = {{kStartsPort, 0}};
    const int64_t block = storage_order(layout).block;
    if (block > 1) {
      if (!selects_blocks(*selection, from.dims[1], node.output(0).type().dims[1], block)) continue;
      offer.built_for = {{0, 1}};
    }
    offer_copies(context, node, offer);
  }
}

}  // namespace

void propose_slices(ProposeContext& context) {
  context.for_each({"Slice"}, [&](const Node& node) { offer_slice(context, node); });
}

}  // namespace tessera::native
