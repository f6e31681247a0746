// Slice: a range with a step along each axis. The ranges are attributes until version 9 and inputs
// from 10 on.
#include <algorithm>
#include <limits>
#include <numeric>

#include "ops/index_reader.h"
#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/strided_view.h"

namespace tessera::ops {
namespace {

constexpr int kStartsInputVersion = 10;
// From this number on, an end means "to the end" of a dimension that is not known yet.
constexpr int64_t kUnboundedEnd = std::numeric_limits<int32_t>::max();

// The elements start, start + step, ... of one axis.
struct Range {
  int64_t start = 0;
  int64_t step = 1;
  int64_t count = 0;
};

Range range_of(int64_t dim, int64_t start, int64_t end, int64_t step) {
  if (dim == 0) return {};
  // The minimum int64 has no positive counterpart; both steps select at most one element.
  step = std::max(step, -std::numeric_limits<int64_t>::max());
  if (start < 0) start += dim;
  if (end < 0) end += dim;
  if (step > 0) {
    start = std::clamp<int64_t>(start, 0, dim);
    end = std::clamp<int64_t>(end, 0, dim);
    return {start, step, end > start ? (end - start - 1) / step + 1 : 0};
  }
  start = std::clamp<int64_t>(start, 0, dim - 1);
  end = std::clamp<int64_t>(end, -1, dim - 1);
  return {start, step, start > end ? (start - end - 1) / -step + 1 : 0};
}

// The length of a range if a bound or the dimension is a symbol.
Dim symbolic_count(const Dim& dim, const Dim& start, const Dim& end, int64_t step) {
  const bool is_to_end = end == dim || (end.is_known() && end.value() >= kUnboundedEnd);
  if (step == 1 && start.is_known()) {
    if (start.value() == 0 && is_to_end) return dim;
    if (start.value() > 0 && is_to_end) {
      return expression("max", {subtract(dim, start), 0});
    }
    if (start.value() == 0 && end.is_known()) {
      return end.value() < 0    ? expression("max", {add(dim, end), 0})
             : end.value() == 0 ? Dim(0)
                                : expression("min", {dim, end});
    }
  }
  const bool is_from_end = start == Dim(-1) || (start.is_known() && start.value() >= kUnboundedEnd);
  if (step == -1 && is_from_end && end.is_known() && end.value() <= -kUnboundedEnd) return dim;
  return expression("slice", {dim, start, end, step});
}

// The lists of a node as the rule knows them; an unknown list is nullopt.
struct Lists {
  std::optional<std::vector<Dim>> starts;
  std::optional<std::vector<Dim>> ends;
  std::optional<std::vector<int64_t>> axes;  // normalised
  std::optional<std::vector<int64_t>> steps;
};

void check_length(const InferContext& context, const char* name, size_t length, size_t expected) {
  if (length == expected) return;
  context.fail("expected as many " + std::string(name) + " as starts, " + std::to_string(expected) +
               ", found " + std::to_string(length));
}

std::optional<size_t> range_count(const InferContext& context) {
  if (context.version() < kStartsInputVersion) {
    return context.node().attributes.get_ints("starts").size();
  }
  for (const size_t index : {1, 2, 3, 4}) {
    if (!context.has_input(index)) continue;
    if (const auto length = list_length(context, index)) return static_cast<size_t>(*length);
  }
  return std::nullopt;
}

Lists lists_of(const InferContext& context, size_t count, int64_t rank) {
  Lists lists;
  const Attributes& attributes = context.node().attributes;
  std::optional<std::vector<int64_t>> axes;
  bool has_axes = false;
  if (context.version() < kStartsInputVersion) {
    lists.starts = shape_from(attributes.get_ints("starts"));
    lists.ends = shape_from(attributes.get_ints("ends"));
    if (const auto* given = attributes.find_ints("axes")) axes = *given;
    has_axes = axes.has_value();
  } else {
    lists.starts = dim_list(context, 1);
    lists.ends = dim_list(context, 2);
    has_axes = context.has_input(3);
    if (has_axes) axes = integer_list(context, 3);
  }
  if (static_cast<int64_t>(count) > rank) {
    context.fail("expected at most one range for each of " + std::to_string(rank) +
                 " dimensions, found " + std::to_string(count));
  }
  if (!has_axes) {
    axes.emplace();
    for (size_t axis = 0; axis < count; ++axis) axes->push_back(static_cast<int64_t>(axis));
  }
  lists.steps.emplace(count, 1);
  if (context.has_input(4)) lists.steps = integer_list(context, 4);
  if (axes) lists.axes = normalized_axes(context, *axes, rank);
  if (lists.starts) check_length(context, "starts", lists.starts->size(), count);
  if (lists.ends) check_length(context, "ends", lists.ends->size(), count);
  if (lists.axes) check_length(context, "axes", lists.axes->size(), count);
  if (lists.steps) {
    check_length(context, "steps", lists.steps->size(), count);
    for (const int64_t step : *lists.steps) {
      if (step == 0) context.fail("expected steps other than 0, found 0");
    }
  }
  return lists;
}

StridedView view_of(std::span<const int64_t> dims, std::span<const int64_t> axes,
                    std::span<const int64_t> starts, std::span<const int64_t> ends,
                    std::span<const int64_t> steps,
                    std::pmr::memory_resource* memory = std::pmr::get_default_resource()) {
  StridedView view = dense_view(dims, memory);
  for (size_t index = 0; index < axes.size(); ++index) {
    const int64_t rank = static_cast<int64_t>(dims.size());
    const auto axis = static_cast<size_t>(axes[index] < 0 ? axes[index] + rank : axes[index]);
    const Range range =
        range_of(dims[axis], starts[index], ends[index], steps.empty() ? 1 : steps[index]);
    view.offset += range.start * view.strides[axis];
    // With one element the step is unused and may be anything, so its product could overflow.
    view.strides[axis] = range.count > 1 ? view.strides[axis] * range.step : 0;
    view.dims[axis] = range.count;
  }
  return view;
}

Dim sliced_dim(const InferContext& context, const Lists& lists, size_t index, const Dim& dim,
               size_t axis) {
  if (!lists.starts || !lists.ends || !lists.steps) return unknown_dim(context, 0, axis);
  const Dim& start = (*lists.starts)[index];
  const Dim& end = (*lists.ends)[index];
  const int64_t step = (*lists.steps)[index];
  if (dim.is_known() && start.is_known() && end.is_known()) {
    return range_of(dim.value(), start.value(), end.value(), step).count;
  }
  return symbolic_count(dim, start, end, step);
}

void infer_slice(InferContext& context) {
  const Shape* shape = context.shape(0);
  if (shape == nullptr) return context.set_output(0, context.element(0));
  const auto rank = static_cast<int64_t>(shape->size());
  const auto count = range_count(context);
  if (!count) return context.set_output(0, context.element(0), unknown_shape(context, 0, rank));
  const Lists lists = lists_of(context, *count, rank);
  if (!lists.axes) {
    return context.set_output(0, context.element(0), unknown_shape(context, 0, rank));
  }
  Shape sliced = *shape;
  for (size_t index = 0; index < *count; ++index) {
    const auto axis = static_cast<size_t>((*lists.axes)[index]);
    sliced[axis] = sliced_dim(context, lists, index, (*shape)[axis], axis);
  }
  context.set_output(0, context.element(0), sliced);
  const std::vector<Dim>* elements = propagated_elements(context, 0);
  const bool is_all_known =
      lists.starts && lists.ends && lists.steps && is_known(*lists.starts) && is_known(*lists.ends);
  if (elements == nullptr || !is_all_known) return;
  const StridedView view = view_of(dims_from(*shape), *lists.axes, dims_from(*lists.starts),
                                   dims_from(*lists.ends), *lists.steps);
  context.set_elements(0, view_elements(view, *elements));
}

void run_slice(const KernelCall& call) {
  const std::pmr::vector<int64_t> starts = integers_of(call, "starts", 1);
  const std::pmr::vector<int64_t> ends = integers_of(call, "ends", 2);
  std::pmr::vector<int64_t> axes = integers_of(call, "axes", 3);
  const std::pmr::vector<int64_t> steps = integers_of(call, 4);
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), int64_t{0});
  }
  copy_view(call, view_of(call.inputs[0].dims, axes, starts, ends, steps, &call.scratch));
}

}  // namespace

std::vector<Op> slice_ops() {
  return {{.name = "Slice",
           .versions = {1, 10, 11, 13},
           .inputs = {{"data", "T"},
                      {"starts", "Tind", Arity::Required, 10},
                      {"ends", "Tind", Arity::Required, 10},
                      {"axes", "Tind", Arity::Optional, 10},
                      {"steps", "Tind", Arity::Optional, 10}},
           .outputs = {{"output", "T"}},
           .type_variables = {{"T", kAllTypesAndStrings}, {"Tind", kIndexTypes}},
           .attributes = {{"starts", AttributeKind::Ints, std::nullopt, 1, 9, true},
                          {"ends", AttributeKind::Ints, std::nullopt, 1, 9, true},
                          {"axes", AttributeKind::Ints, std::nullopt, 1, 9}},
           .traits = kBoundsMagnitude,
           .infer = infer_slice,
           .flops = no_flops,
           .kernel = run_slice}};
}

}  // namespace tessera::ops
