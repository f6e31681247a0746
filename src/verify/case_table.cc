#include "verify/op_case.h"

#include <array>

namespace tessera::verification {
namespace {

constexpr std::array kCases = {
    // Convolutions: strides, paddings, dilations, groups, one to three dimensions.
    "Conv(1x3x9x7, #4x3x3x3)",
    "Conv(1x3x9x7, 4x3x3x3, 4)",
    "Conv(2x3x9x7, #5x3x3x3, #5) pads=1,1,1,1",
    "Conv(1x17x8x9, #33x17x1x1, #33)",
    "Conv(1x16x11x5, #32x16x3x2) strides=2,3 pads=0,1,2,1",
    "Conv(1x6x7x7, #6x1x3x3, #6) group=6 pads=1,1,1,1",
    "Conv(1x6x7x7, #9x2x3x3) group=3 dilations=2,1",
    "Conv(1x3x15x15, #8x3x7x7, #8) strides=2,2 pads=3,3,3,3",
    "Conv(1x3x8x8, #4x3x3x3) auto_pad=SAME_UPPER strides=2,2",
    "Conv(2x3x13, #5x3x4, #5) strides=2",
    "Conv(1x2x5x4x6, #3x2x2x3x2) pads=1,0,1,0,1,1",
    "ConvTranspose(1x3x5x4, #3x2x3x3, #2) strides=2,2 pads=1,0,0,1",
    "ConvTranspose(1x4x5x4, #4x3x2x2) group=2 output_padding=1,0 strides=2,2",
    // Convolutions with fused ops.
    "Conv(1x3x9x7, #8x3x3x3, #8) pads=1,1,1,1; Relu(@)",
    "Conv(1x3x9x7, #8x3x3x3) pads=1,1,1,1; Add(@, 1x8x9x7); Relu(@)",
    "Conv(1x3x9x7, #8x3x3x3, #8) pads=1,1,1,1; Add(1x8x9x7, @)",
    "Conv(1x3x9x7, #9x3x3x3, #9); Clip(@, s{0.0}, s{6.0})",
    "Conv(1x3x9x7, #5x3x1x1, #5); Sigmoid(@); Mul(@0, @1)",
    "Conv(1x3x9x7, #5x3x1x1, #5); HardSwish(@)",
    "Conv(1x3x9x7, #5x3x1x1, #5); LeakyRelu(@) alpha=0.1",
    "Conv(1x3x9x7, #5x3x1x1, #5); Tanh(@)",
    "Conv(1x3x9x7, #5x3x1x1, #5); HardSigmoid(@)",
    "Conv(1x32x1x1, #8x32x1x1, #8); Sigmoid(@)",
    "Conv(1x3x9x7, #5x3x1x1, #5); Max(@, 1x5x9x7)",
    "Conv(1x16x9x7, #32x16x3x3, #32) pads=1,1,1,1; Add(@, 1x32x9x7); Relu(@)",
    // Matrix products.
    "MatMul(3x5, 5x7)",
    "MatMul(3x5, #5x7)",
    "MatMul(1x1, 1x1)",
    "MatMul(33x17, #17x65)",
    "MatMul(2x3x5, 2x5x4)",
    "MatMul(2x1x3x5, 4x5x2)",
    "MatMul(5, 5x3)",
    "MatMul(2x3x5, 5)",
    "MatMul(7x7, =0)",
    "MatMul(int32:3x5, int32:5x2)",
    "MatMul(float64:3x5, float64:5x2)",
    "MatMul(3x5, #5x7); Add(@, #7)",
    "MatMul(2x3x5, #5x8); Add(@, #8); Relu(@)",
    "MatMul(33x17, #17x65); Clip(@, s{0.0}, s{6.0})",
    "MatMul(3x5, 5x7); MatMul(2x3, @)",
    "Gemm(3x5, #5x7, #7)",
    "Gemm(5x3, #7x5, 3x7) transA=1 transB=1 alpha=0.5 beta=2",
    "Gemm(3x5, 5x7)",
    "Gemm(1x64, #10x64, #10) transB=1; Relu(@)",
    // Pooling.
    "MaxPool(1x3x9x7) kernel_shape=2,2 strides=2,2",
    "MaxPool(2x17x9x7) kernel_shape=3,3 pads=1,1,1,1 strides=2,1",
    "MaxPool(1x3x9x7) kernel_shape=3,3 ceil_mode=1 strides=2,2",
    "MaxPool(1x3x9x8) kernel_shape=2,3 dilations=2,1",
    "MaxPool(1x4x11) kernel_shape=3",
    "AveragePool(1x3x9x7) kernel_shape=3,3 pads=1,1,1,1",
    "AveragePool(1x17x9x7) kernel_shape=3,3 pads=1,0,1,2 strides=2,2 count_include_pad=1",
    "AveragePool(1x3x5x6x7) kernel_shape=2,2,2",
    "GlobalAveragePool(2x17x5x3)",
    "GlobalMaxPool(2x17x5x3)",
    // Elementwise, one input.
    "Relu(7)",
    "Relu(1x17x3x5)",
    "Relu(s)",
    "Relu(0x3)",
    "Relu(float16:3x5)",
    "Relu(int32:3x5)",
    "LeakyRelu(1x17x3x5) alpha=0.2",
    "Elu(3x5) alpha=0.7",
    "Selu(3x5)",
    "Celu(3x5)",
    "Sigmoid(2x3x5)",
    "HardSigmoid(2x3x5)",
    "HardSwish(1x17x3x5)",
    "Tanh(2x3x5)",
    "Gelu(2x3x5)",
    "Gelu(2x3x5) approximate=tanh",
    "Mish(2x3x5)",
    "Softplus(2x3x5)",
    "Softsign(2x3x5)",
    "Exp(2x3x5)",
    "Log(+2x3x5)",
    "Sqrt(+2x3x5)",
    "Reciprocal(+2x3x5)",
    "Abs(2x3x5)",
    "Neg(2x3x5)",
    "Neg(int32:2x3x5)",
    "Round(2x3x5)",
    "Floor(2x3x5)",
    "Erf(2x3x5)",
    "Clip(2x3x5, s{-0.5}, s{1.5})",
    "Clip(2x3x5, _, s{1.5})",
    "Clip(2x3x5)",
    "Sigmoid(2x17x3x3); Mul(=0, @)",
    // Elementwise, two inputs.
    "Add(3x5, 3x5)",
    "Add(3x5, =0)",
    "Add(1x17x3x5, #17x1x1)",
    "Add(2x3x5, 5)",
    "Add(2x1x5, 3x1)",
    "Add(int64:3x5, int64:3x5)",
    "Sub(2x3x5, 2x3x5)",
    "Sub(3, 2x3)",
    "Mul(1x17x3x5, 1x17x1x1)",
    "Mul(2x3x5, #s)",
    "Div(2x3x5, +2x3x5)",
    "Div(int32:7, +int32:7)",
    "Pow(+2x3x5, s{2.0})",
    "Max(2x3x5, 2x3x5)",
    "Min(2x3x5, 5)",
    "PRelu(1x17x3x5, 17x1x1)",
    "Greater(2x3x5, 2x3x5)",
    "Equal(int32:2x3x5, int32:2x3x5)",
    "Where(bool:2x3, 2x3, 2x3)",
    // Along an axis.
    "Softmax(3x17)",
    "Softmax(2x3x5x4) axis=1",
    "LogSoftmax(3x17)",
    "ReduceMean(2x3x5x4, {2,3})",
    "ReduceSum(2x3x5x4, {1}) keepdims=0",
    "ReduceMax(2x3x5x4, {-1})",
    "ReduceMin(2x3x5)",
    "ReduceL2(2x3x5, {1})",
    "BatchNormalization(2x17x3x5, #+17, #17, #17, #+17)",
    "InstanceNormalization(2x5x3x7, #5, #5)",
    "LayerNormalization(2x3x17, #17, #17)",
    "GroupNormalization(2x6x3x5, #6, #6) num_groups=3",
    "LRN(1x17x5x3) size=5",
    "LRN(2x4x5x3) size=3 alpha=0.01 beta=0.5 bias=2",
    // Recurrences.
    "LSTM/3(5x2x3, #1x16x3, #1x16x4, #1x32) hidden_size=4",
    "LSTM/3(5x2x3, #2x16x3, #2x16x4) hidden_size=4 direction=bidirectional",
    "GRU/2(5x2x3, #1x12x3, #1x12x4, #1x24) hidden_size=4",
    "GRU/2(5x2x3, #2x12x3, #2x12x4, #2x24) direction=bidirectional linear_before_reset=1",
    "RNN/2(5x2x3, #1x4x3, #1x4x4, #1x8) hidden_size=4 direction=reverse",
    "RNN/2(5x2x3, #2x4x3, #2x4x4) hidden_size=4 direction=bidirectional",
    // Data movement.
    "Concat(2x3x5, 2x4x5) axis=1",
    "Concat(1x16x3x3, 1x17x3x3, 1x1x3x3) axis=1",
    "Split/2(2x8x3) num_outputs=2 axis=1",
    "Transpose(2x3x5) perm=2,0,1",
    "Reshape(2x3x4, {4,-1})",
    "Flatten(2x3x4)",
    "Squeeze(2x1x4, {1})",
    "Unsqueeze(2x4, {0})",
    "Slice(7x5, {1,0}, {6,4})",
    "Gather(7x5, {0,3,6})",
    "Pad(2x3x4, {0,1,2,1,0,0}, s{1.5})",
    "Expand(1x3, {2,3})",
    "Resize(1x3x4x5, _, {1.0,1.0,2.0,2.0}) mode=nearest",
    "Resize(1x3x4x5, _, {1.0,1.0,2.0,2.0}) mode=linear",
    "DepthToSpace(1x8x3x5) blocksize=2",
    "Cast(2x3x5) to=7",
    "Identity(2x3)",
};

}  // namespace

std::span<const char* const> case_table() { return kCases; }

std::vector<std::string> cases_for(const ops::Op& op) {
  std::vector<std::string> cases;
  for (const char* shape : {"5x3", "7", "1x1", "2x3x5", "1x17x3x5", "s"}) {
    std::string inputs;
    for (const ops::Parameter& input : op.inputs) {
      if (input.arity == ops::Arity::Optional) continue;
      inputs += (inputs.empty() ? "" : ", ") + std::string(shape);
    }
    cases.push_back(op.domain + "::" + op.name + "(" + inputs + ")");
  }
  return cases;
}

}  // namespace tessera::verification
