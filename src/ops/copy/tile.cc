// Tile: repeats a tensor along each axis.
#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/strided_view.h"

namespace tessera::ops {
namespace {

// Each axis becomes two: the repetition and the position within it.
StridedView tiled_view(std::span<const int64_t> input, std::span<const int64_t> output,
                       std::pmr::memory_resource* memory = std::pmr::get_default_resource()) {
  const std::pmr::vector<int64_t> strides = dense_strides(input, memory);
  StridedView view(memory);
  for (size_t axis = 0; axis < input.size(); ++axis) {
    view.dims.push_back(input[axis] == 0 ? 0 : output[axis] / input[axis]);
    view.strides.push_back(0);
    view.dims.push_back(input[axis]);
    view.strides.push_back(strides[axis]);
  }
  return view;
}

Dim repeated(const InferContext& context, const Dim& dim, const Dim& repeats) {
  if (repeats.is_known() && repeats.value() < 0) {
    context.fail_input(1, "expected repeats of at least 0, found " + repeats.text());
  }
  int64_t result = 0;
  if (dim.is_known() && repeats.is_known() &&
      __builtin_mul_overflow(dim.value(), repeats.value(), &result)) {
    context.fail("expected a dimension that fits 64 bits, found " + dim.text() + " repeated " +
                 repeats.text() + " times");
  }
  return multiply(dim, repeats);
}

void infer_tile(InferContext& context) {
  const Shape* shape = context.shape(0);
  const auto repeats = dim_list(context, 1);
  if (shape == nullptr) {
    const auto length = list_length(context, 1);
    return context.set_output(0, context.element(0),
                              length ? unknown_shape(context, 0, *length) : std::nullopt);
  }
  const auto rank = static_cast<int64_t>(shape->size());
  if (!repeats) {
    return context.set_output(0, context.element(0), unknown_shape(context, 0, rank));
  }
  if (repeats->size() != shape->size()) {
    context.fail_input(1, "expected a number of repeats for each of " + std::to_string(rank) +
                              " dimensions, found " + std::to_string(repeats->size()));
  }
  Shape output;
  for (size_t axis = 0; axis < shape->size(); ++axis) {
    output.push_back(repeated(context, (*shape)[axis], (*repeats)[axis]));
  }
  context.set_output(0, context.element(0), output);
  const auto* elements = propagated_elements(context, 0);
  if (elements != nullptr && small_count(output)) {
    context.set_elements(
        0, view_elements(tiled_view(dims_from(*shape), dims_from(output)), *elements));
  }
}

void run_tile(const KernelCall& call) {
  copy_view(call, tiled_view(call.inputs[0].dims, call.outputs[0].dims, &call.scratch));
}

}  // namespace

std::vector<Op> tile_ops() {
  return {{.name = "Tile",
           .versions = {6, 13},
           .inputs = {{"input", "T"}, {"repeats", "T1", Arity::Required, 6}},
           .outputs = {{"output", "T"}},
           .type_variables = {{"T", kAllTypesAndStrings}, {"T1", kInt64Type}},
           .infer = infer_tile,
           .flops = no_flops,
           .kernel = run_tile}};
}

}  // namespace tessera::ops
