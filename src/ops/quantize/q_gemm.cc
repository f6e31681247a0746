// QGemm of com.microsoft: alpha * A * B + C on bytes, with a result of float32 or of bytes.
// https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
#include <string>

#include "ops/broadcast.h"
#include "ops/convert_element.h"
#include "ops/domains.h"
#include "ops/matmul/dense_operand.h"
#include "ops/quantize/integer_product.h"
#include "ops/quantize/quantization.h"

namespace tessera::ops {
namespace {

enum GemmInput : size_t {
  kGemmA,
  kGemmScaleA,
  kGemmZeroA,
  kGemmB,
  kGemmScaleB,
  kGemmZeroB,
  kGemmC,
  kGemmScale,
  kGemmZero,
};

bool has_transposed(const Node& node, const char* attribute) {
  return node.attributes.get_int(attribute) != 0;
}

// The axis of B whose indices are the columns of the product.
int64_t column_axis(const Node& node) { return has_transposed(node, "transB") ? 0 : 1; }

const Shape* matrix_shape(const InferContext& context, size_t index) {
  const Shape* const shape = context.shape(index);
  if (shape != nullptr && shape->size() != 2) {
    context.fail_input(index, "expected a matrix, found shape [" + text(*shape) + "]");
  }
  return shape;
}

DataType gemm_type(const InferContext& context) {
  if (context.has_input(kGemmScale) != context.has_input(kGemmZero)) {
    context.fail("expected both inputs 'y_scale' and 'y_zero_point', or neither");
  }
  return context.has_input(kGemmZero) ? context.element(kGemmZero) : DataType::Float32;
}

void infer_quantized_gemm(InferContext& context) {
  const DataType type = gemm_type(context);
  context.set_output(0, type);
  check_tensor_scale(context, kGemmScaleA, kGemmZeroA);
  check_tensor_scale(context, kGemmScale, kGemmZero);
  const Shape* const left = matrix_shape(context, kGemmA);
  const Shape* const right = matrix_shape(context, kGemmB);
  if (right != nullptr) {
    check_per_axis(context, kGemmScaleB, right, column_axis(context.node()));
    check_per_axis(context, kGemmZeroB, right, column_axis(context.node()));
  }
  if (left == nullptr || right == nullptr) return;
  const size_t depth_of_left = has_transposed(context.node(), "transA") ? 0 : 1;
  const auto columns = static_cast<size_t>(column_axis(context.node()));
  const Dim& depth = (*left)[depth_of_left];
  const Dim& other_depth = (*right)[1 - columns];
  if (depth.is_known() && other_depth.is_known() && depth != other_depth) {
    context.fail_input(kGemmB, "expected " + depth.text() + " rows as input 'A' ([" + text(*left) +
                                   "]) says, found shape [" + text(*right) + "]");
  }
  const Shape shape = {(*left)[1 - depth_of_left], (*right)[columns]};
  const Shape* const bias = context.has_input(kGemmC) ? context.shape(kGemmC) : nullptr;
  if (bias != nullptr && !can_broadcast_to(*bias, shape)) {
    context.fail_input(kGemmC, "expected a shape that can be broadcast to [" + text(shape) +
                                   "], found [" + text(*bias) + "]");
  }
  context.set_output(0, type, shape);
}

// The sums of products, to which C is added: all are exact in float64.
std::pmr::vector<double> gemm_sums(const KernelCall& call) {
  const bool moves_left = has_transposed(call.node, "transA");
  const int64_t columns = call.outputs[0].dims[1];
  const int64_t rows = call.outputs[0].dims[0];
  const std::pmr::vector<double> left = centred(call, kGemmA, kGemmZeroA, std::nullopt);
  const std::pmr::vector<double> right = centred(call, kGemmB, kGemmZeroB, column_axis(call.node));
  std::pmr::vector<double> sums(static_cast<size_t>(call.outputs[0].elements), &call.scratch);
  const ReadDense<double, double> read_left = {left.data(), call.inputs[kGemmA].dims[1]};
  const ReadDense<double, double> read_right = {right.data(), call.inputs[kGemmB].dims[1]};
  const auto store = [&](int64_t, int64_t row, int64_t column, int64_t count, const double* found) {
    std::copy_n(found, count, sums.begin() + row * columns + column);
  };
  multiply_matrices<double>(call, {.rows = rows,
                                   .columns = columns,
                                   .depth = call.inputs[kGemmA].dims[moves_left ? 0 : 1],
                                   .left = {read_left, !moves_left},
                                   .right = {read_right, has_transposed(call.node, "transB")},
                                   .store = store});
  if (!call.has_input(kGemmC)) return sums;
  const std::span<const int32_t> bias = call.inputs[kGemmC].as<int32_t>();
  const BroadcastLoop loop(call.outputs[0].dims, {call.inputs[kGemmC].dims}, &call.scratch);
  loop.for_each_run(0, call.outputs[0].elements, [&](const BroadcastLoop::Run& run) {
    for (int64_t index = 0; index < run.length; ++index) {
      sums[static_cast<size_t>(run.output + index)] +=
          bias[static_cast<size_t>(run.inputs[0] + index * loop.step(0))];
    }
  });
  return sums;
}

void run_quantized_gemm(const KernelCall& call) {
  const MutableTensorView& output = call.outputs[0];
  if (output.elements == 0) return;
  const std::pmr::vector<double> sums = gemm_sums(call);
  const double left_scale = call.node.attributes.get_float("alpha") *
                            tensor_scale_of(call, kGemmScaleA, kGemmZeroA).scale;
  const std::span<const float> scales = call.inputs[kGemmScaleB].as<float>();
  const auto columns = static_cast<size_t>(output.dims[1]);
  const auto real_at = [&](size_t index) {
    const double scale = scales[scales.size() == 1 ? 0 : index % columns];
    return sums[index] * left_scale * scale;
  };
  if (!call.has_input(kGemmZero)) {
    const std::span<float> reals = output.as<float>();
    for (size_t index = 0; index < reals.size(); ++index) {
      reals[index] = from_double<float>(real_at(index));
    }
    return;
  }
  const TensorScale to = tensor_scale_of(call, kGemmScale, kGemmZero);
  visit_byte(output.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::span<T> integers = output.as<T>();
    for (size_t index = 0; index < integers.size(); ++index) {
      integers[index] = to.integer_of<T>(real_at(index));
    }
  });
}

int64_t quantized_gemm_flops(const Node& node, std::span<const Type> inputs,
                             std::span<const Type> outputs) {
  const Dim depth = (*inputs[kGemmA].shape)[has_transposed(node, "transA") ? 0 : 1];
  return multiply(multiply(depth, 2), flops_per_output(node, inputs, outputs)).value();
}

}  // namespace

std::vector<Op> q_gemm_ops() {
  constexpr TypeSet kResultTypes = kByteTypes | TypeSet{DataType::Float32};
  return {{.name = "QGemm",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"A", "TA"},
                      {"a_scale", "T"},
                      {"a_zero_point", "TA"},
                      {"B", "TB"},
                      {"b_scale", "T"},
                      {"b_zero_point", "TB"},
                      {"C", "TC", Arity::Optional},
                      {"y_scale", "T", Arity::Optional},
                      {"y_zero_point", "TYZ", Arity::Optional}},
           .outputs = {{"Y", "TY"}},
           .type_variables = {{"T", TypeSet{DataType::Float32}},
                              {"TA", kByteTypes},
                              {"TB", kByteTypes},
                              {"TC", TypeSet{DataType::Int32}},
                              {"TYZ", kByteTypes},
                              {"TY", kResultTypes}},
           .attributes = {{"alpha", AttributeKind::Float, 1.0F},
                          {"transA", AttributeKind::Int, int64_t{0}},
                          {"transB", AttributeKind::Int, int64_t{0}}},
           .infer = infer_quantized_gemm,
           .flops = quantized_gemm_flops,
           .kernel = run_quantized_gemm}};
}

}  // namespace tessera::ops
