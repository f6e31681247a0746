// ConvInteger and QLinearConv: convolutions of bytes. QLinearConv of com.microsoft may have the
// channels of its feature maps, but not those of its weights, as the last axis.
// https://onnx.ai/onnx/operators/onnx__QLinearConv.html
#include <utility>

#include "ops/check_shape.h"
#include "ops/convolution/conv.h"
#include "ops/convolution/convolution.h"
#include "ops/domains.h"
#include "ops/quantize/channels_last.h"
#include "ops/quantize/integer_product.h"
#include "ops/quantize/quantization.h"

namespace tessera::ops {
namespace {

constexpr int64_t kChannelsOfWeights = 0;

void infer_convolution(InferContext& context, size_t weights, size_t zero, size_t zeros_of_weights,
                       DataType type) {
  check_per_axis(context, zero, context.shape(0), std::nullopt);
  check_per_axis(context, zeros_of_weights, context.shape(weights), kChannelsOfWeights);
  if (!is_channels_last(context.node())) {
    return context.set_output(0, type, convolution_shape(context, 0, weights));
  }
  InferInput input = context.input(0);
  if (input.type.shape) input.type.shape = channels_moved_first(*input.type.shape);
  std::optional<Shape> shape = convolution_shape(context, input, weights);
  if (shape) shape = channels_moved_last(*std::move(shape));
  context.set_output(0, type, std::move(shape));
}

std::pmr::vector<double> convolution(const KernelCall& call, size_t weights, size_t zero,
                                     size_t zeros_of_weights) {
  std::pmr::vector<double> input = centred(call, 0, zero, std::nullopt);
  const bool is_moved = is_channels_last(call.node);
  std::pmr::vector<int64_t> dims(call.inputs[0].dims.begin(), call.inputs[0].dims.end(),
                                 &call.scratch);
  std::pmr::vector<int64_t> result_dims(call.outputs[0].dims.begin(), call.outputs[0].dims.end(),
                                        &call.scratch);
  if (is_moved) {
    dims = channels_moved_first(dims, call.scratch);
    result_dims = channels_moved_first(result_dims, call.scratch);
    input = elements_moved_first(input, dims, call.scratch);
  }
  const std::pmr::vector<double> filters =
      centred(call, weights, zeros_of_weights, kChannelsOfWeights);
  std::pmr::vector<double> sums(static_cast<size_t>(call.outputs[0].elements), &call.scratch);
  const std::array inputs = {view_of(dims, std::as_const(input)),
                             view_of(call.inputs[weights].dims, filters)};
  const std::array outputs = {view_of(result_dims, sums)};
  run_conv({call.node, inputs, outputs, call.pool, call.scratch});
  if (is_moved) sums = elements_moved_last(sums, result_dims, call.scratch);
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
  if (call.outputs[0].elements == 0) return;
  std::pmr::vector<double> sums = convolution(call, 3, 2, 5);
  const std::span<const int64_t> dims = call.outputs[0].dims;
  const size_t channel_axis = is_channels_last(call.node) ? dims.size() - 1 : 1;
  if (call.has_input(8)) {
    // Its scale is that of the products, its zero point 0.
    const std::span<const int32_t> bias = call.inputs[8].as<int32_t>();
    const auto plane = static_cast<size_t>(element_count(dims.subspan(channel_axis + 1)));
    for (size_t index = 0; index < sums.size(); ++index) {
      sums[index] += bias[index / plane % bias.size()];
    }
  }
  store_requantized(call, sums,
                    {.dims = dims,
                     .left_scale = 1,
                     .right_scale = 4,
                     .scale = 6,
                     .zero_point = 7,
                     .left_axis = std::nullopt,
                     .right_axis = static_cast<int64_t>(channel_axis)});
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
  Op moved_conv = quantized_conv;
  moved_conv.domain = kMicrosoftDomain;
  moved_conv.versions = {1};
  moved_conv.attributes.push_back({"channels_last", AttributeKind::Int, int64_t{0}});
  return {integers, quantized_conv, moved_conv};
}

}  // namespace tessera::ops
