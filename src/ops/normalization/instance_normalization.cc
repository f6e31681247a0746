// InstanceNormalization: normalises each channel of each batch item by its own mean and variance.
#include "ops/check_shape.h"
#include "ops/normalization/normalize.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

void infer_instance_normalization(InferContext& context) {
  context.set_output(0, context.element(0), context.input(0).type.shape);
  const Shape* input = context.shape(0);
  if (input == nullptr) return;
  if (input->size() < 2) {
    context.fail_input(0, "expected batch and channels, found " + text(*input));
  }
  check_shape(context, 1, {(*input)[1]});
  check_shape(context, 2, {(*input)[1]});
}

void run_instance_normalization(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  if (input.elements == 0) return;
  const int64_t channels = input.dims[1];
  const int64_t rows = input.dims[0] * channels;
  normalize_rows(call, rows, input.elements / rows,
                 [=](int64_t row, int64_t) { return row % channels; });
}

}  // namespace

std::vector<Op> instance_normalization_ops() {
  return {{.name = "InstanceNormalization",
           .versions = {6, 22},
           .inputs = {{"input", "T"}, {"scale", "T"}, {"B", "T"}},
           .outputs = {{"output", "T"}},
           .type_variables = {{"T", kFloatTypes}},
           .attributes = {{"epsilon", AttributeKind::Float, 1e-5F}},
           .infer = infer_instance_normalization,
           .flops = normalization_flops,
           .kernel = run_instance_normalization}};
}

}  // namespace tessera::ops
