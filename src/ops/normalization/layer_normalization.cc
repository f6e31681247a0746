// LayerNormalization: normalises over all axes from `axis` on.
#include <algorithm>

#include "ops/normalization/element_parameter.h"
#include "ops/normalization/normalize.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

// Values of ONNX's TensorProto.DataType, used by stash_type.
constexpr int64_t kOnnxFloat = 1;
constexpr int64_t kOnnxBFloat16 = 16;

void infer_layer_normalization(InferContext& context) {
  const int64_t stash_type = context.node().attributes.get_int("stash_type");
  if (stash_type != kOnnxFloat && stash_type != kOnnxBFloat16) {
    context.fail("expected 'stash_type' 1 (float32) or 16 (bfloat16), found " +
                 std::to_string(stash_type));
  }
  const DataType stash = stash_type == kOnnxFloat ? DataType::Float32 : DataType::BFloat16;
  const Shape* input = context.shape(0);
  context.set_output(0, context.element(0), context.input(0).type.shape);
  context.set_output(1, stash);
  context.set_output(2, stash);
  if (input == nullptr) return;
  const auto rank = static_cast<int64_t>(input->size());
  const int64_t axis = context.normalized_axis(context.node().attributes.get_int("axis"), rank);
  check_parameter(context, 1, *input);
  check_parameter(context, 2, *input);
  Shape reduced = *input;
  std::fill(reduced.begin() + axis, reduced.end(), Dim(1));
  context.set_output(1, stash, reduced);
  context.set_output(2, stash, reduced);
}

void run_layer_normalization(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  int64_t axis = call.node.attributes.get_int("axis");
  if (axis < 0) axis += input.rank();
  const int64_t rows = element_count(input.dims.first(static_cast<size_t>(axis)));
  // If rows have no elements, they only matter if their means are requested.
  if (rows == 0 || (input.elements == 0 && !call.has_output(1) && !call.has_output(2))) return;
  const int64_t length = input.elements / rows;
  const double epsilon = call.node.attributes.get_float("epsilon");
  const ElementParameter scale(call.inputs[1], input.dims, call.scratch);
  const ElementParameter shift(call.has_input(2) ? call.inputs[2] : TensorView(), input.dims,
                               call.scratch);
  const auto lines = static_cast<size_t>(rows);
  std::pmr::vector<double> means(call.has_output(1) ? lines : 0, &call.scratch);
  std::pmr::vector<double> inverses(call.has_output(2) ? lines : 0, &call.scratch);
  visit_floating(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* source = input.as<T>().data();
    T* target = call.outputs[0].as<T>().data();
    call.pool.parallel_for(rows, 4096 / (length + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* elements = source + row * length;
        const Moments moments = moments_of(std::span(elements, static_cast<size_t>(length)));
        const double inverse = moments.inverse_deviation(epsilon);
        if (!means.empty()) means[static_cast<size_t>(row)] = moments.mean;
        if (!inverses.empty()) inverses[static_cast<size_t>(row)] = inverse;
        ElementParameter::Cursor factor(scale, row * length);
        ElementParameter::Cursor offset(shift, row * length);
        for (int64_t index = row * length; index < (row + 1) * length; ++index) {
          const double normalized = (to_double(source[index]) - moments.mean) * inverse;
          target[index] = from_double<T>(normalized * factor.value() + offset.value());
          factor.advance();
          offset.advance();
        }
      }
    });
  });
  if (call.has_output(1)) store_doubles(means, call.outputs[1]);
  if (call.has_output(2)) store_doubles(inverses, call.outputs[2]);
}

}  // namespace

std::vector<Op> layer_normalization_ops() {
  return {
      {.name = "LayerNormalization",
       .versions = {17},
       .inputs = {{"X", "T"}, {"Scale", "T"}, {"B", "T", Arity::Optional}},
       .outputs = {{"Y", "T"}, {"Mean", "U", Arity::Optional}, {"InvStdDev", "U", Arity::Optional}},
       .type_variables = {{"T", kFloatTypes}, {"U", {DataType::Float32, DataType::BFloat16}}},
       .attributes = {{"axis", AttributeKind::Int, int64_t{-1}},
                      {"epsilon", AttributeKind::Float, 1e-5F},
                      {"stash_type", AttributeKind::Int, int64_t{1}}},
       .traits = kRowWise,
       .infer = infer_layer_normalization,
       .flops = normalization_flops,
       .kernel = run_layer_normalization}};
}

}  // namespace tessera::ops
