// MatMulInteger and QLinearMatMul: matrix products of bytes, which may be 8-bit floats.
// https://onnx.ai/onnx/operators/onnx__MatMulInteger.html
#include "ops/matmul/mat_mul.h"
#include "ops/quantize/integer_product.h"
#include "ops/quantize/quantization.h"

namespace tessera::ops {
namespace {

// Zero points and scales may differ by row of the left factor and by column of the right one.
constexpr int64_t kRows = -2;
constexpr int64_t kColumns = -1;

std::optional<int64_t> rows_of(size_t rank) {
  return rank > 1 ? std::optional(kRows) : std::nullopt;
}

void infer_product(InferContext& context, size_t left, size_t right, size_t zeros_of_left,
                   size_t zeros_of_right, DataType type) {
  const Shape* const rows = context.shape(left);
  check_per_axis(context, zeros_of_left, rows,
                 rows == nullptr ? std::nullopt : rows_of(rows->size()));
  check_per_axis(context, zeros_of_right, context.shape(right), kColumns);
  context.set_output(0, type, product_shape(context, left, right));
}

std::pmr::vector<double> product(const KernelCall& call, size_t left, size_t right,
                                 size_t zeros_of_left, size_t zeros_of_right) {
  const std::pmr::vector<double> rows =
      centred(call, left, zeros_of_left, rows_of(call.inputs[left].dims.size()));
  const std::pmr::vector<double> columns = centred(call, right, zeros_of_right, kColumns);
  std::pmr::vector<double> sums(static_cast<size_t>(call.outputs[0].elements), &call.scratch);
  const std::array inputs = {view_of(call.inputs[left].dims, rows),
                             view_of(call.inputs[right].dims, columns)};
  const std::array outputs = {view_of(call.outputs[0].dims, sums)};
  run_mat_mul({call.node, inputs, outputs, call.pool, call.scratch});
  return sums;
}

void infer_integers(InferContext& context) { infer_product(context, 0, 1, 2, 3, DataType::Int32); }

void run_integers(const KernelCall& call) { store_sums(call, product(call, 0, 1, 2, 3)); }

void infer_quantized_product(InferContext& context) {
  infer_product(context, 0, 3, 2, 5, context.element(7));
  const Shape* const rows = context.shape(0);
  check_per_axis(context, 1, rows, rows == nullptr ? std::nullopt : rows_of(rows->size()));
  check_per_axis(context, 4, context.shape(3), kColumns);
  check_per_axis(context, 6, context.shape(6), std::nullopt);
  check_per_axis(context, 7, context.shape(7), std::nullopt);
}

void run_quantized_product(const KernelCall& call) {
  store_requantized(call, product(call, 0, 3, 2, 5),
                    {.left_scale = 1,
                     .right_scale = 4,
                     .scale = 6,
                     .zero_point = 7,
                     .left_axis = rows_of(call.outputs[0].dims.size()),
                     .right_axis = kColumns});
}

}  // namespace

std::vector<Op> mat_mul_integer_ops() {
  Op integers = {
      .name = "MatMulInteger",
      .versions = {10},
      .inputs = {{"A", "T1"},
                 {"B", "T2"},
                 {"a_zero_point", "T1", Arity::Optional},
                 {"b_zero_point", "T2", Arity::Optional}},
      .outputs = {{"Y", "T3"}},
      .type_variables = {{"T1", kByteTypes}, {"T2", kByteTypes}, {"T3", TypeSet{DataType::Int32}}},
      .infer = infer_integers,
      .kernel = run_integers};
  Op quantized_product = {.name = "QLinearMatMul",
                          .versions = {10, 21},
                          .inputs = {{"a", "T1"},
                                     {"a_scale", "TS"},
                                     {"a_zero_point", "T1"},
                                     {"b", "T2"},
                                     {"b_scale", "TS"},
                                     {"b_zero_point", "T2"},
                                     {"y_scale", "TS"},
                                     {"y_zero_point", "T3"}},
                          .outputs = {{"y", "T3"}},
                          .type_variables = {{"T1", kByteTypes, {{21, kFloat8Types}}},
                                             {"T2", kByteTypes, {{21, kFloat8Types}}},
                                             {"T3", kByteTypes, {{21, kFloat8Types}}},
                                             {"TS", kScaleTypes}},
                          .infer = infer_quantized_product,
                          .kernel = run_quantized_product};
  return {integers, quantized_product};
}

}  // namespace tessera::ops
