// ConvInteger and QLinearConv: convolutions of bytes.
// https://onnx.ai/onnx/operators/onnx__QLinearConv.html
#include "ops/check_shape.h"
#include "ops/convolution/conv.h"
#include "ops/convolution/convolution.h"
#include "ops/quantize/integer_product.h"
#include "ops/quantize/quantization.h"

namespace tessera::ops {
namespace {

constexpr int64_t kChannelsOfWeights = 0;
constexpr int64_t kChannelsOfOutput = 1;

void infer_convolution(InferContext& context, size_t weights, size_t zero, size_t zeros_of_weights,
                       DataType type) {
  check_per_axis(context, zero, context.shape(0), std::nullopt);
  check_per_axis(context, zeros_of_weights, context.shape(weights), kChannelsOfWeights);
  context.set_output(0, type, convolution_shape(context, 0, weights));
}

std::pmr::vector<double> convolution(const KernelCall& call, size_t weights, size_t zero,
                                     size_t zeros_of_weights) {
  const std::pmr::vector<double> input = centred(call, 0, zero, std::nullopt);
  const std::pmr::vector<double> filters =
      centred(call, weights, zeros_of_weights, kChannelsOfWeights);
  std::pmr::vector<double> sums(static_cast<size_t>(call.outputs[0].elements), &call.scratch);
  const std::array inputs = {view_of(call.inputs[0].dims, input),
                             view_of(call.inputs[weights].dims, filters)};
  const std::array outputs = {view_of(call.outputs[0].dims, sums)};
  run_conv({call.node, inputs, outputs, call.pool, call.scratch});
  return sums;
}

void infer_conv_integer(InferContext& context) {
  infer_convolution(context, 1, 2, 3, DataType::Int32);
}

void run_conv_integer(const KernelCall& call) { store_sums(call, convolution(call, 1, 2, 3)); }

void infer_quantized_conv(InferContext& context) {
  infer_convolution(context, 3, 2, 5, context.element(7));
  for (const size_t single : {size_t{1}, size_t{6}, size_t{7}}) {
    check_per_axis(context, single, context.shape(0), std::nullopt);
  }
  check_per_axis(context, 4, context.shape(3), kChannelsOfWeights);
  const Shape* const weights = context.shape(3);
  if (weights != nullptr && !weights->empty()) check_shape(context, 8, {weights->front()});
}

void run_quantized_conv(const KernelCall& call) {
  std::pmr::vector<double> sums = convolution(call, 3, 2, 5);
  if (call.has_input(8)) {
    // Its scale is that of the products, its zero point 0.
    const std::span<const int32_t> bias = call.inputs[8].as<int32_t>();
    const size_t plane =
        sums.size() /
        std::max<size_t>(1, static_cast<size_t>(call.outputs[0].dims[0] * call.outputs[0].dims[1]));
    for (size_t index = 0; index < sums.size(); ++index) {
      sums[index] += bias[index / plane % bias.size()];
    }
  }
  store_requantized(call, sums,
                    {.left_scale = 1,
                     .right_scale = 4,
                     .scale = 6,
                     .zero_point = 7,
                     .left_axis = std::nullopt,
                     .right_axis = kChannelsOfOutput});
}

}  // namespace

std::vector<Op> conv_integer_ops() {
  Op integers = convolution_op();
  integers.name = "ConvInteger";
  integers.versions = {10};
  integers.inputs = {{"x", "T1"},
                     {"w", "T2"},
                     {"x_zero_point", "T1", Arity::Optional},
                     {"w_zero_point", "T2", Arity::Optional}};
  integers.outputs = {{"y", "T3"}};
  integers.type_variables = {
      {"T1", kByteTypes}, {"T2", kByteTypes}, {"T3", TypeSet{DataType::Int32}}};
  integers.infer = infer_conv_integer;
  integers.kernel = run_conv_integer;
  Op quantized_conv = integers;
  quantized_conv.name = "QLinearConv";
  quantized_conv.inputs = {{"x", "T1"},       {"x_scale", "TS"},      {"x_zero_point", "T1"},
                           {"w", "T2"},       {"w_scale", "TS"},      {"w_zero_point", "T2"},
                           {"y_scale", "TS"}, {"y_zero_point", "T3"}, {"B", "T4", Arity::Optional}};
  quantized_conv.type_variables = {{"T1", kByteTypes},
                                   {"T2", kByteTypes},
                                   {"T3", kByteTypes},
                                   {"T4", TypeSet{DataType::Int32}},
                                   {"TS", TypeSet{DataType::Float32}}};
  quantized_conv.infer = infer_quantized_conv;
  quantized_conv.kernel = run_quantized_conv;
  return {integers, quantized_conv};
}

}  // namespace tessera::ops
