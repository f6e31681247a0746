// MatMulInteger and QLinearMatMul: matrix products of bytes, which may be 8-bit floats.
// MatMulInteger16 of com.microsoft has factors of 16 bits, MatMulIntegerToFloat and
// DynamicQuantizeMatMul have a result of real numbers.
// https://onnx.ai/onnx/operators/onnx__MatMulInteger.html
// https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
#include <utility>

#include "ops/check_shape.h"
#include "ops/convert_element.h"
#include "ops/domains.h"
#include "ops/matmul/mat_mul.h"
#include "ops/quantize/integer_product.h"
#include "ops/quantize/quantization.h"

namespace tessera::ops {
namespace {

// Zero points and scales may differ by row of the left factor and by column of the right one.
constexpr int64_t kRows = -2;
constexpr int64_t kColumns = -1;

// The left factor may be a vector, which is one row, the right one, which is one column.
std::optional<int64_t> rows_of(size_t rank) {
  return rank > 1 ? std::optional(kRows) : std::nullopt;
}
std::optional<int64_t> columns_of(size_t rank) {
  return rank > 1 ? std::optional(kColumns) : std::nullopt;
}

void check_by_row(const InferContext& context, size_t index, size_t left) {
  const Shape* const shape = context.shape(left);
  if (shape != nullptr) check_per_axis(context, index, shape, rows_of(shape->size()));
}

void check_by_column(const InferContext& context, size_t index, size_t right) {
  const Shape* const shape = context.shape(right);
  if (shape != nullptr) check_per_axis(context, index, shape, columns_of(shape->size()));
}

// The dimensions of the output, with those of 1 that products of vectors lack.
std::pmr::vector<int64_t> product_dims(const KernelCall& call, size_t left, size_t right) {
  const std::span<const int64_t> output = call.outputs[0].dims;
  std::pmr::vector<int64_t> dims(output.begin(), output.end(), &call.scratch);
  if (call.inputs[left].rank() == 1) {
    dims.insert(call.inputs[right].rank() == 1 ? dims.end() : dims.end() - 1, 1);
  }
  if (call.inputs[right].rank() == 1) dims.push_back(1);
  return dims;
}

// The sums of products of two centred factors.
std::pmr::vector<double> product_of(const KernelCall& call, size_t left,
                                    const std::pmr::vector<double>& rows, size_t right,
                                    const std::pmr::vector<double>& columns) {
  std::pmr::vector<double> sums(static_cast<size_t>(call.outputs[0].elements), &call.scratch);
  const std::array inputs = {view_of(call.inputs[left].dims, rows),
                             view_of(call.inputs[right].dims, columns)};
  const std::array outputs = {view_of(call.outputs[0].dims, sums)};
  run_mat_mul({call.node, inputs, outputs, call.pool, call.scratch});
  return sums;
}

std::pmr::vector<double> centred_columns(const KernelCall& call, size_t right, size_t zeros) {
  return centred(call, right, zeros, columns_of(call.inputs[right].dims.size()));
}

std::pmr::vector<double> product(const KernelCall& call, size_t left, size_t right,
                                 size_t zeros_of_left, size_t zeros_of_right) {
  const std::pmr::vector<double> rows =
      centred(call, left, zeros_of_left, rows_of(call.inputs[left].dims.size()));
  return product_of(call, left, rows, right, centred_columns(call, right, zeros_of_right));
}

// --- MatMulInteger -------------------------------------------------------------------------------

void infer_integers(InferContext& context) {
  check_by_row(context, 2, 0);
  check_by_column(context, 3, 1);
  context.set_output(0, DataType::Int32, product_shape(context, 0, 1));
}

void run_integers(const KernelCall& call) { store_sums(call, product(call, 0, 1, 2, 3)); }

// --- MatMulInteger16 -----------------------------------------------------------------------------

void infer_wide_integers(InferContext& context) {
  context.set_output(0, DataType::Int32, product_shape(context, 0, 1));
}

std::pmr::vector<int64_t> wide_integers(const TensorView& input,
                                        std::pmr::memory_resource& memory) {
  std::pmr::vector<int64_t> integers(static_cast<size_t>(input.elements), &memory);
  if (input.type == DataType::Int16) {
    std::ranges::copy(input.as<int16_t>(), integers.begin());
  } else {
    std::ranges::copy(input.as<uint16_t>(), integers.begin());
  }
  return integers;
}

// Sums of products of 16 bits may need more than the 53 bits of float64.
void run_wide_integers(const KernelCall& call) {
  const std::pmr::vector<int64_t> rows = wide_integers(call.inputs[0], call.scratch);
  const std::pmr::vector<int64_t> columns = wide_integers(call.inputs[1], call.scratch);
  const auto count = static_cast<size_t>(call.outputs[0].elements);
  std::pmr::vector<int64_t> sums(count, &call.scratch);
  const auto view = [](std::span<const int64_t> dims, const std::pmr::vector<int64_t>& elements) {
    return TensorView{DataType::Int64, dims, elements.data(), std::ssize(elements)};
  };
  const std::array inputs = {view(call.inputs[0].dims, rows), view(call.inputs[1].dims, columns)};
  const std::array outputs = {
      MutableTensorView{DataType::Int64, call.outputs[0].dims, sums.data(), std::ssize(sums)}};
  run_mat_mul({call.node, inputs, outputs, call.pool, call.scratch});
  // They wrap around: "the accumulation may overflow if and only if in 32 bits".
  std::ranges::transform(sums, call.outputs[0].as<int32_t>().begin(), [](int64_t sum) {
    return static_cast<int32_t>(static_cast<uint32_t>(sum));
  });
}

// --- QLinearMatMul -------------------------------------------------------------------------------

void infer_quantized_product(InferContext& context) {
  for (const size_t by_row : {size_t{1}, size_t{2}}) check_by_row(context, by_row, 0);
  for (const size_t by_column : {size_t{4}, size_t{5}}) check_by_column(context, by_column, 3);
  check_per_axis(context, 6, context.shape(6), std::nullopt);
  check_per_axis(context, 7, context.shape(7), std::nullopt);
  context.set_output(0, context.element(7), product_shape(context, 0, 3));
}

void run_quantized_product(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  const std::pmr::vector<int64_t> dims = product_dims(call, 0, 3);
  store_requantized(call, product(call, 0, 3, 2, 5),
                    {.dims = dims,
                     .left_scale = 1,
                     .right_scale = 4,
                     .scale = 6,
                     .zero_point = 7,
                     .left_axis = kRows,
                     .right_axis = kColumns});
}

// --- MatMulIntegerToFloat, DynamicQuantizeMatMul -------------------------------------------------

void check_bias_of_columns(const InferContext& context, size_t bias, size_t right) {
  const Shape* const columns = context.shape(right);
  if (columns == nullptr || columns->empty()) return;
  check_shape(context, bias, {columns->size() == 1 ? Dim(1) : columns->back()});
}

// Sets the output to the numbers and the bias of each column, which may be left out.
void store_reals(const KernelCall& call, std::span<const double> numbers, size_t bias,
                 int64_t columns) {
  const std::pmr::vector<double> offsets =
      call.has_input(bias) ? to_doubles(call.inputs[bias], call.scratch)
                           : std::pmr::vector<double>(static_cast<size_t>(columns), &call.scratch);
  visit_floating(call.outputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::span<T> output = call.outputs[0].as<T>();
    for (size_t index = 0; index < output.size(); ++index) {
      output[index] = from_double<T>(numbers[index] + offsets[index % offsets.size()]);
    }
  });
}

void infer_integers_to_float(InferContext& context) {
  // Of the left factor, scales and zero points may differ by column.
  check_by_column(context, 2, 0);
  check_by_column(context, 4, 0);
  check_by_column(context, 3, 1);
  check_by_column(context, 5, 1);
  check_bias_of_columns(context, 6, 1);
  context.set_output(0, context.element(2), product_shape(context, 0, 1));
}

void run_integers_to_float(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  std::pmr::vector<double> rows = centred_columns(call, 0, 4);
  const bool is_one_scale = call.inputs[2].elements == 1;
  // A single scale is applied to the sums, which are exact.
  if (!is_one_scale) multiply_by_scales(call, rows, call.inputs[0].dims, 2, kColumns);
  std::pmr::vector<double> reals = product_of(call, 0, rows, 1, centred_columns(call, 1, 5));
  const std::pmr::vector<int64_t> dims = product_dims(call, 0, 1);
  if (is_one_scale) multiply_by_scales(call, reals, dims, 2, std::nullopt);
  multiply_by_scales(call, reals, dims, 3, kColumns);
  store_reals(call, reals, 6, dims.back());
}

void infer_dynamic_product(InferContext& context) {
  check_by_column(context, 2, 1);
  check_by_column(context, 3, 1);
  check_bias_of_columns(context, 4, 1);
  context.set_output(0, context.element(0), product_shape(context, 0, 1));
}

void run_dynamic_product(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  const std::span<const float> left = call.inputs[0].as<float>();
  const TensorScale range = range_scale(left);
  const auto scale = static_cast<float>(range.scale);
  const auto zero = static_cast<uint8_t>(range.zero_point);
  std::pmr::vector<double> rows(left.size(), &call.scratch);
  std::ranges::transform(left, rows.begin(), [&](float number) {
    return static_cast<double>(quantized<uint8_t>(number / scale, zero) - zero);
  });
  std::pmr::vector<double> reals = product_of(call, 0, rows, 1, centred_columns(call, 1, 3));
  for (double& real : reals) real *= scale;
  const std::pmr::vector<int64_t> dims = product_dims(call, 0, 1);
  multiply_by_scales(call, reals, dims, 2, kColumns);
  store_reals(call, reals, 4, dims.back());
}

int64_t integer_product_flops(const Node& node, std::span<const Type> inputs,
                              std::span<const Type> outputs) {
  const Dim depth = inputs[0].shape->back();
  return multiply(flops_per_output(node, inputs, outputs), multiply(depth, 2)).value();
}

Op product_op(const char* name, InferRule infer, ReferenceKernel kernel) {
  return {.name = name,
          .domain = kMicrosoftDomain,
          .versions = {1},
          .infer = std::move(infer),
          .flops = integer_product_flops,
          .kernel = std::move(kernel)};
}

}  // namespace

std::vector<Op> mat_mul_integer_ops() {
  constexpr Arity kOptional = Arity::Optional;
  constexpr TypeSet kSumType = {DataType::Int32};
  Op integers = product_op("MatMulInteger", infer_integers, run_integers);
  integers.domain = "";
  integers.versions = {10};
  integers.inputs = {{"A", "T1"},
                     {"B", "T2"},
                     {"a_zero_point", "T1", kOptional},
                     {"b_zero_point", "T2", kOptional}};
  integers.outputs = {{"Y", "T3"}};
  integers.type_variables = {{"T1", kByteTypes}, {"T2", kByteTypes}, {"T3", kSumType}};

  Op quantized_product =
      product_op("QLinearMatMul", infer_quantized_product, run_quantized_product);
  quantized_product.domain = "";
  quantized_product.versions = {10, 21};
  quantized_product.inputs = {{"a", "T1"},       {"a_scale", "TS"},     {"a_zero_point", "T1"},
                              {"b", "T2"},       {"b_scale", "TS"},     {"b_zero_point", "T2"},
                              {"y_scale", "TS"}, {"y_zero_point", "T3"}};
  quantized_product.outputs = {{"y", "T3"}};
  quantized_product.type_variables = {{"T1", kByteTypes, {{21, kFloat8Types}}},
                                      {"T2", kByteTypes, {{21, kFloat8Types}}},
                                      {"T3", kByteTypes, {{21, kFloat8Types}}},
                                      {"TS", kScaleTypes}};

  constexpr TypeSet kWideTypes = {DataType::Int16, DataType::UInt16};
  Op wide = product_op("MatMulInteger16", infer_wide_integers, run_wide_integers);
  wide.inputs = {{"A", "T1"}, {"B", "T2"}};
  wide.outputs = {{"Y", "T3"}};
  wide.type_variables = {{"T1", kWideTypes}, {"T2", kWideTypes}, {"T3", kSumType}};

  Op to_float = product_op("MatMulIntegerToFloat", infer_integers_to_float, run_integers_to_float);
  to_float.inputs = {{"A", "T1"},
                     {"B", "T2"},
                     {"a_scale", "T3"},
                     {"b_scale", "T3"},
                     {"a_zero_point", "T1", kOptional},
                     {"b_zero_point", "T2", kOptional},
                     {"bias", "T3", kOptional}};
  to_float.outputs = {{"Y", "T3"}};
  to_float.type_variables = {
      {"T1", kByteTypes}, {"T2", kByteTypes}, {"T3", {DataType::Float32, DataType::Float16}}};

  Op dynamic = product_op("DynamicQuantizeMatMul", infer_dynamic_product, run_dynamic_product);
  dynamic.inputs = {{"A", "T1"},
                    {"B", "T2"},
                    {"b_scale", "T1"},
                    {"b_zero_point", "T2", kOptional},
                    {"bias", "T1", kOptional}};
  dynamic.outputs = {{"Y", "T1"}};
  dynamic.type_variables = {{"T1", {DataType::Float32}}, {"T2", kByteTypes}};
  return {integers, quantized_product, wide, to_float, dynamic};
}

}  // namespace tessera::ops
