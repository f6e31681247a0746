#include "accuracy_cases.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tessera {
namespace {

// Functions of one input and no attributes, for each type. '+': for positive numbers.
constexpr std::array kFunctions = {
    "Acos",
    "+Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Celu",
    "Cos",
    "Cosh",
    "Elu",
    "Erf",
    "Exp",
    "Gelu",
    "HardSwish",
    "HardSigmoid",
    "LeakyRelu",
    "+Log",
    "Mish",
    "Reciprocal",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "+Sqrt",
    "Swish",
    "Tan",
    "Tanh",
    // Exact ones.
    "Abs",
    "Ceil",
    "Floor",
    "Neg",
    "Relu",
    "Round",
    "Sign",
};

constexpr std::array kTypes = {"", "float16:", "bfloat16:", "float64:"};

// '$' is the length, "$/64" a part of it, at least 1.
constexpr std::array kRows = {
    // Elementwise.
    "Gelu($) approximate=tanh",
    "Elu($) alpha=0.7",
    "Celu($) alpha=0.3",
    "LeakyRelu($) alpha=0.2",
    "Clip($, s{-0.5}, s{1.5})",
    "Add($, $)",
    "Add(16x$/16, $/16)",
    "Sub($, $)",
    "Mul($, $)",
    "Mul($, s)",
    "Div($, +$)",
    "Div($, #+s)",
    "Div($, s{3.0})",
    "Div(16x$/16, #+$/16)",
    "Pow(+$, $)",
    "Pow($, s{2.0})",
    "Pow($, s{3.0})",
    "Pow(+$, s{0.5})",
    "Pow(+$, s{-0.5})",
    "Max($, $)",
    "PRelu(4x$/4, 4x1)",
    "Mean($, $, $)",
    "Sum($, $, $)",
    "Cast($) to=10",
    "Cast($) to=16",
    "Cast(float64:$) to=1",
    "Cast(float64:$) to=10",
    "Cast(float64:$) to=16",
    "Cast(float16:$) to=1",
    "Cast(int64:$) to=1",
    // Along axes.
    "ReduceSum($)",
    "ReduceSum(16x$/16, {1})",
    "ReduceSum($/16x16, {0})",
    "ReduceMean($)",
    "ReduceMean(16x$/16, {1})",
    "ReduceMean(4x$/64x16, {1})",
    "ReduceL1($)",
    "ReduceL2($)",
    "ReduceL2(16x$/16, {1})",
    "ReduceSumSquare($)",
    "ReduceLogSum(+$)",
    "ReduceLogSumExp($)",
    "ReduceLogSumExp(16x$/16, {1})",
    "ReduceMax($)",
    "ReduceProd($/8x8, {1})",
    "CumSum($, s{0})",
    "Softmax(1x$)",
    "Softmax($/16x16)",
    "Softmax(16x$/16x1) axis=1",
    "LogSoftmax(1x$)",
    "LogSoftmax($/16x16)",
    "LayerNormalization(1x$, #$, #$)",
    "LayerNormalization($/64x64, #64, #64)",
    "InstanceNormalization(1x2x$/2, #2, #2)",
    "InstanceNormalization(1x64x$/64, #64, #64)",
    "GroupNormalization(1x4x$/4, #4, #4) num_groups=2",
    "BatchNormalization(1x16x$/16, #+16, #16, #16, #+16)",
    "LRN(1x16x8x$/128) size=5",
    "LRN(1x$/4x2x2) size=5 alpha=0.01 beta=0.5 bias=2",
    // Windows.
    "AveragePool(1x4x8x$/32) kernel_shape=3,3 pads=1,1,1,1",
    "AveragePool(1x1x8x$/8) kernel_shape=8,64 strides=8,64",
    "GlobalAveragePool(1x2x8x$/16)",
    "GlobalAveragePool(1x64x8x$/512)",
    "MaxPool(1x4x8x$/32) kernel_shape=3,3",
    "Resize(1x4x8x$/32, _, {1.0,1.0,2.0,2.0}) mode=linear",
    "Resize(1x4x8x$/32, _, {1.0,1.0,1.5,2.5}) mode=linear",
    "Resize(1x4x8x$/32, _, {1.0,1.0,2.0,2.0}) mode=cubic",
    "Resize(1x4x8x$/32, _, {1.0,1.0,2.0,2.0}) mode=nearest",
    // Products.
    "MatMul(2x$, #$x3)",
    "MatMul(2x$/4, $/4x3)",
    "MatMul($/64x64, #64x64)",
    "MatMul(64x$/64, #$/64x64)",
    "MatMul(4x$/256x64, 4x64x16)",
    "MatMul(1x$/16, #$/16x16)",
    "Gemm(2x$/4, #$/4x3, #3)",
    "Gemm($/64x64, #64x64, #64) transB=1 alpha=0.5 beta=2",
    "Conv(1x$/16x4x4, #4x$/16x3x3, #4)",
    "Conv(1x16x8x$/128, #16x16x3x3, #16) pads=1,1,1,1",
    "Conv(1x16x8x$/128, #32x16x1x1, #32)",
    "Conv(1x16x8x$/128, #16x1x3x3, #16) group=16 pads=1,1,1,1",
    "Conv(1x4x$/4, #4x4x5) strides=2",
    "ConvTranspose(1x16x4x$/64, #16x8x3x3, #8) strides=2,2",
    "Einsum(8x$/64x8, 8x8x8) equation=bij,bjk->bik",
    // Recurrences.
    "LSTM/3(64x2x$/1024, #1x64x$/1024, #1x64x16, #1x128) hidden_size=16",
    "GRU/2(64x2x$/1024, #1x48x$/1024, #1x48x16, #1x96) hidden_size=16",
    "GRU/2(64x2x$/1024, #1x48x$/1024, #1x48x16, #1x96) hidden_size=16 linear_before_reset=1",
    "RNN/2(64x2x$/1024, #1x16x$/1024, #1x16x16, #1x32) hidden_size=16",
    // Other types.
    "Add(float16:$, float16:$)",
    "Div(float16:$, +float16:$)",
    "Mul(bfloat16:$, bfloat16:$)",
    "ReduceSum(float16:16x$/16, {1})",
    "ReduceMean(float16:16x$/16, {1})",
    "Softmax(float16:$/16x16)",
    "LayerNormalization(float16:$/64x64, #float16:64, #float16:64)",
    "MatMul(float16:$/64x64, #float16:64x64)",
    "MatMul(bfloat16:$/64x64, #bfloat16:64x64)",
    "MatMul(float64:$/64x64, #float64:64x64)",
    "ReduceSum(float64:$)",
    "Conv(float16:1x16x8x$/128, #float16:16x16x3x3, #float16:16) pads=1,1,1,1",
    "Add(float64:$, float64:$)",
    "Div(float64:$, +float64:$)",
    // Groups.
    "Conv(1x16x8x$/128, #16x16x3x3, #16) pads=1,1,1,1; Relu(@)",
    "Conv(1x16x8x$/128, #32x16x1x1, #32); Sigmoid(@); Mul(@0, @1)",
    "Conv(1x16x8x$/128, #16x16x3x3) pads=1,1,1,1; Add(@, 1x16x8x$/128); Relu(@)",
    "MatMul($/64x64, #64x64); Add(@, #64); Gelu(@)",
    "MatMul($/64x64, #64x64); Add(@, #64); Relu(@)",
    "MatMul(4x$/256x64, 4x64x16); Softmax(@); MatMul(@, 4x16x64)",
    "Sigmoid($); Mul(=0, @)",
    "Mul($, =0); Sub(@, =0); Tanh(@)",
    "Div($, +$); Floor(@); Mul(@, =1); Sub(=0, @)",
    "Exp($); Add(@, s{1.0}); Log(@)",
    "Exp($/16x16); ReduceSum(@, {1}); Div(@0, @1)",
    "ReduceMean(16x$/16, {1}); Sub(=0, @); Mul(@, @); ReduceMean(@, {1})",
    "Add(16x$/16, 16x$/16); LayerNormalization(@, #$/16, #$/16)",
    "Add(float16:$, float16:$); Sigmoid(@); Mul(@, =0)",
};

std::string with_length(std::string_view text, int64_t length) {
  std::string result;
  while (!text.empty()) {
    if (text[0] != '$') {
      result += text[0];
      text.remove_prefix(1);
      continue;
    }
    text.remove_prefix(1);
    int64_t divisor = 1;
    if (!text.empty() && text[0] == '/') {
      size_t digits = 1;
      while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
      divisor = std::stoll(std::string(text.substr(1, digits - 1)));
      text.remove_prefix(digits);
    }
    result += std::to_string(std::max<int64_t>(length / divisor, 1));
  }
  return result;
}

}  // namespace

std::vector<AccuracyCase> accuracy_cases(int64_t length) {
  std::vector<AccuracyCase> cases;
  for (const std::string_view function : kFunctions) {
    const bool is_positive = function.starts_with('+');
    for (const char* type : kTypes) {
      cases.push_back({std::string(function.substr(is_positive ? 1 : 0)) + "(" +
                       (is_positive ? "+" : "") + type + std::to_string(length) + ")"});
    }
  }
  for (const char* row : kRows) {
    cases.push_back(
        {with_length(row, length), std::string_view(row).find(';') != std::string_view::npos});
  }
  return cases;
}

}  // namespace tessera
