// Expand: broadcasts a tensor and a shape with each other; a 1 in the shape keeps the input's
// dimension.
#include <algorithm>

#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/strided_view.h"

namespace tessera::ops {
namespace {

Dim broadcast_dim(const InferContext& context, const Dim& input, const Dim& wanted) {
  if (wanted.is_known() && wanted.value() < 0) {
    context.fail_input(1, "expected dimensions of at least 0, found " + wanted.text());
  }
  if (input == wanted || wanted == Dim(1)) return input;
  if (input == Dim(1)) return wanted;
  if (input.is_known() && wanted.is_known()) {
    context.fail("expected dimensions that are equal or 1, found " + input.text() + " and " +
                 wanted.text());
  }
  // If the input's dimension is a number other than 1 and the shape's is a symbol, the symbol is 1
  // or that number.
  if (input.is_known()) return input;
  if (wanted.is_known()) return wanted;
  return input.symbol() < wanted.symbol() ? expression("broadcast", {input, wanted})
                                          : expression("broadcast", {wanted, input});
}

StridedView expanded_view(std::span<const int64_t> input, std::span<const int64_t> output,
                          std::pmr::memory_resource* memory = std::pmr::get_default_resource()) {
  const std::pmr::vector<int64_t> strides = dense_strides(input, memory);
  const size_t added = output.size() - input.size();
  StridedView view(memory);
  view.dims.assign(output.begin(), output.end());
  view.strides.assign(output.size(), 0);
  for (size_t axis = 0; axis < input.size(); ++axis) {
    if (input[axis] != 1) view.strides[added + axis] = strides[axis];
  }
  return view;
}

void infer_expand(InferContext& context) {
  const Shape* input = context.shape(0);
  const auto wanted = dim_list(context, 1);
  if (input == nullptr || !wanted) {
    const auto length = list_length(context, 1);
    if (input == nullptr || !length) return context.set_output(0, context.element(0));
    const int64_t rank = std::max<int64_t>(*length, static_cast<int64_t>(input->size()));
    return context.set_output(0, context.element(0), unknown_shape(context, 0, rank));
  }
  if (static_cast<int64_t>(wanted->size()) > kMaxDimensions) {
    context.fail_input(1, "expected at most " + std::to_string(kMaxDimensions) +
                              " dimensions, found " + std::to_string(wanted->size()));
  }
  const size_t rank = std::max(input->size(), wanted->size());
  Shape output;
  for (size_t axis = 0; axis < rank; ++axis) {
    const size_t from_end = rank - axis;
    const Dim mine = from_end > input->size() ? Dim(1) : (*input)[input->size() - from_end];
    const Dim other = from_end > wanted->size() ? Dim(1) : (*wanted)[wanted->size() - from_end];
    output.push_back(broadcast_dim(context, mine, other));
  }
  context.set_output(0, context.element(0), output);
  const auto* elements = propagated_elements(context, 0);
  if (elements != nullptr && small_count(output)) {
    context.set_elements(
        0, view_elements(expanded_view(dims_from(*input), dims_from(output)), *elements));
  }
}

void run_expand(const KernelCall& call) {
  copy_view(call, expanded_view(call.inputs[0].dims, call.outputs[0].dims, &call.scratch));
}

}  // namespace

std::vector<Op> expand_ops() {
  return {{.name = "Expand",
           .versions = {8, 13},
           .inputs = {{"input", "T"}, {"shape", "tensor(int64)"}},
           .outputs = {{"output", "T"}},
           .type_variables = {{"T", kAllTypesAndStrings}, {"tensor(int64)", kInt64Type}},
           .traits = kBoundsMagnitude,
           .infer = infer_expand,
           .flops = no_flops,
           .kernel = run_expand}};
}

}  // namespace tessera::ops
