// Squeeze and Unsqueeze: remove and insert dimensions of 1. The axes are an attribute until version
// 12 and an input from 13 on.
#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/strided_view.h"

namespace tessera::ops {
namespace {

constexpr int kAxesInputVersion = 13;

struct Axes {
  bool is_given = false;
  std::optional<std::vector<int64_t>> values;  // nullopt if they are unknown
  std::optional<int64_t> count;
};

Axes axes_of(const InferContext& context) {
  Axes axes;
  if (context.version() < kAxesInputVersion) {
    if (const auto* given = context.node().attributes.find_ints("axes")) axes.values = *given;
    axes.is_given = axes.values.has_value();
  } else if (context.has_input(1)) {
    axes.is_given = true;
    axes.values = integer_list(context, 1);
    axes.count = list_length(context, 1);
  }
  if (axes.values) axes.count = static_cast<int64_t>(axes.values->size());
  return axes;
}

void set_view(InferContext& context, std::optional<Shape> shape) {
  context.set_output(0, context.element(0), std::move(shape));
  if (const auto* elements = propagated_elements(context, 0)) context.set_elements(0, *elements);
}

// Without axes, every dimension of 1 is removed; nullopt if a symbol might be 1.
std::optional<Shape> without_ones(const Shape& shape) {
  if (!is_known(shape)) return std::nullopt;
  Shape result;
  for (const Dim& dim : shape) {
    if (dim != Dim(1)) result.push_back(dim);
  }
  return result;
}

void infer_squeeze(InferContext& context) {
  const Shape* shape = context.shape(0);
  const Axes axes = axes_of(context);
  if (shape == nullptr) return set_view(context, std::nullopt);
  const auto rank = static_cast<int64_t>(shape->size());
  // An empty list means the same as no list, as in ONNX Runtime.
  if (!axes.is_given || axes.count == 0) return set_view(context, without_ones(*shape));
  if (!axes.values) {
    const bool is_possible = axes.count && *axes.count <= rank;
    return set_view(context,
                    is_possible ? unknown_shape(context, 0, rank - *axes.count) : std::nullopt);
  }
  std::vector<bool> is_gone(shape->size(), false);
  for (const int64_t axis : normalized_axes(context, *axes.values, rank)) {
    const Dim& dim = (*shape)[static_cast<size_t>(axis)];
    if (dim.is_known() && dim.value() != 1) {
      context.fail("expected dimension " + std::to_string(axis) + " to be 1, found shape " +
                   text(*shape));
    }
    is_gone[static_cast<size_t>(axis)] = true;
  }
  Shape squeezed;
  for (size_t axis = 0; axis < shape->size(); ++axis) {
    if (!is_gone[axis]) squeezed.push_back((*shape)[axis]);
  }
  set_view(context, squeezed);
}

void infer_unsqueeze(InferContext& context) {
  const Shape* shape = context.shape(0);
  const Axes axes = axes_of(context);
  if (shape == nullptr || !axes.count) return set_view(context, std::nullopt);
  const auto old_rank = static_cast<int64_t>(shape->size());
  if (*axes.count > kMaxDimensions) {
    context.fail("expected at most " + std::to_string(kMaxDimensions) + " axes, found " +
                 std::to_string(*axes.count));
  }
  const int64_t rank = old_rank + *axes.count;
  if (!axes.values) return set_view(context, unknown_shape(context, 0, rank));
  std::vector<bool> is_new(static_cast<size_t>(rank), false);
  for (const int64_t axis : normalized_axes(context, *axes.values, rank)) {
    is_new[static_cast<size_t>(axis)] = true;
  }
  Shape unsqueezed;
  size_t old_axis = 0;
  for (const bool is_one : is_new) {
    unsqueezed.push_back(is_one ? Dim(1) : (*shape)[old_axis]);
    if (!is_one) ++old_axis;
  }
  set_view(context, unsqueezed);
}

Op view_op(const char* name, const char* output, bool needs_axes, InferRule infer) {
  const Arity arity = needs_axes ? Arity::Required : Arity::Optional;
  return {.name = name,
          .versions = {1, 11, 13, 21, 23, 24, 25},
          .inputs = {{"data", "T"}, {"axes", "tensor(int64)", arity, kAxesInputVersion}},
          .outputs = {{output, "T"}},
          .type_variables = {{"T", kAllTypesAndStrings, small_types_since(21)},
                             {"tensor(int64)", kInt64Type}},
          .attributes = {{"axes", AttributeKind::Ints, std::nullopt, 1, 12, needs_axes}},
          .traits = kView,
          .infer = infer,
          .flops = no_flops,
          .kernel = run_view};
}

}  // namespace

std::vector<Op> squeeze_ops() {
  return {view_op("Squeeze", "squeezed", false, infer_squeeze),
          view_op("Unsqueeze", "expanded", true, infer_unsqueeze)};
}

}  // namespace tessera::ops
