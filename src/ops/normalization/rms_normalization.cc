// RMSNormalization: divides by the root mean square over all axes from `axis` on: Zhang and
// Sennrich, 2019, https://arxiv.org/abs/1910.07467.
#include <algorithm>
#include <cmath>
#include <string>

#include "ops/normalization/element_parameter.h"
#include "ops/normalization/normalize.h"
#include "ops/onnx_types.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

void infer_rms_normalization(InferContext& context) {
  const int64_t stash_type = context.node().attributes.get_int("stash_type");
  const OnnxType* stash = find_onnx_type(stash_type);
  if (stash == nullptr || !is_floating(stash->type)) {
    context.fail("attribute 'stash_type': expected 1, 10, 11 or 16, found " +
                 std::to_string(stash_type));
  }
  const Shape* input = context.shape(0);
  context.set_output(0, context.element(1), context.input(0).type.shape);
  if (input == nullptr) return;
  context.normalized_axis(context.node().attributes.get_int("axis"),
                          static_cast<int64_t>(input->size()));
  check_parameter(context, 1, *input);
}

void run_rms_normalization(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  if (input.elements == 0) return;
  int64_t axis = call.node.attributes.get_int("axis");
  if (axis < 0) axis += input.rank();
  const int64_t rows = element_count(input.dims.first(static_cast<size_t>(axis)));
  const int64_t length = input.elements / rows;
  const double epsilon = call.node.attributes.get_float("epsilon");
  const ElementParameter scale(call.inputs[1], input.dims, call.scratch);
  const MutableTensorView& output = call.outputs[0];
  const auto normalize = [&](auto tag, auto output_tag) {
    using T = typename decltype(tag)::type;
    using U = typename decltype(output_tag)::type;
    const T* source = input.as<T>().data();
    U* target = output.as<U>().data();
    call.pool.parallel_for(rows, 4096 / length + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        CompensatedSum squares;
        for (int64_t index = row * length; index < (row + 1) * length; ++index) {
          squares.add(to_double(source[index]) * to_double(source[index]));
        }
        const double mean = squares.value() / static_cast<double>(length);
        const double factor = 1 / std::sqrt(mean + epsilon);
        ElementParameter::Cursor weight(scale, row * length);
        for (int64_t index = row * length; index < (row + 1) * length; ++index) {
          target[index] = from_double<U>(to_double(source[index]) * factor * weight.value());
          weight.advance();
        }
      }
    });
  };
  visit_floating(input.type, [&](auto tag) {
    visit_floating(output.type, [&](auto output_tag) { normalize(tag, output_tag); });
  });
}

}  // namespace

std::vector<Op> rms_normalization_ops() {
  return {{.name = "RMSNormalization",
           .versions = {23},
           .inputs = {{"X", "T"}, {"scale", "V"}},
           .outputs = {{"Y", "V"}},
           .type_variables = {{"T", kFloatTypes}, {"V", kFloatTypes}},
           .attributes = {{"axis", AttributeKind::Int, int64_t{-1}},
                          {"epsilon", AttributeKind::Float, 1e-5F},
                          {"stash_type", AttributeKind::Int, int64_t{1}}},
           .traits = kRowWise,
           .infer = infer_rms_normalization,
           .flops = normalization_flops,
           .kernel = run_rms_normalization}};
}

}  // namespace tessera::ops
