// InstanceNormalization: each channel of each picture by its own mean and variance.
#include <algorithm>

#include "ops/check_shape.h"
#include "ops/normalize.h"
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
  const int64_t length = input.elements / rows;
  const std::vector<double> scale = to_doubles(call.inputs[1]);
  const std::vector<double> shift = to_doubles(call.inputs[2]);
  const double epsilon = call.node.attributes.get_float("epsilon");
  visit_floating(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* source = input.as<T>().data();
    T* target = call.outputs[0].as<T>().data();
    call.pool.parallel_for(rows, 4096 / length + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const std::span<const T> elements(source + row * length, static_cast<size_t>(length));
        const Moments moments = moments_of(elements);
        const auto channel = static_cast<size_t>(row % channels);
        const double factor = scale[channel] * moments.inverse_deviation(epsilon);
        T* result = target + row * length;
        for (const T element : elements) {
          *result++ = from_double<T>((to_double(element) - moments.mean) * factor + shift[channel]);
        }
      }
    });
  });
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
