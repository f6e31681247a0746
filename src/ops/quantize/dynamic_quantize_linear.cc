// DynamicQuantizeLinear: bytes whose scale and zero point are those of the range of the numbers.
// https://onnx.ai/onnx/operators/onnx__DynamicQuantizeLinear.html
#include "ops/quantize/quantization.h"

namespace tessera::ops {
namespace {

void infer_dynamic(InferContext& context) {
  context.set_output(0, DataType::UInt8, context.input(0).type.shape);
  context.set_output(1, DataType::Float32, Shape{});
  context.set_output(2, DataType::UInt8, Shape{});
}

void run_dynamic(const KernelCall& call) {
  const std::span<const float> input = call.inputs[0].as<float>();
  const TensorScale range = range_scale(input);
  const auto scale = static_cast<float>(range.scale);
  const auto zero = static_cast<uint8_t>(range.zero_point);
  if (call.has_output(1)) call.outputs[1].as<float>()[0] = scale;
  if (call.has_output(2)) call.outputs[2].as<uint8_t>()[0] = zero;
  if (!call.has_output(0)) return;
  const std::span<uint8_t> output = call.outputs[0].as<uint8_t>();
  call.pool.parallel_for(call.outputs[0].elements, kElementGrain, [&](int64_t begin, int64_t end) {
    for (auto index = static_cast<size_t>(begin); index < static_cast<size_t>(end); ++index) {
      output[index] = quantized<uint8_t>(input[index] / scale, zero);
    }
  });
}

}  // namespace

std::vector<Op> dynamic_quantize_linear_ops() {
  return {{.name = "DynamicQuantizeLinear",
           .versions = {11},
           .inputs = {{"x", "T1"}},
           .outputs = {{"y", "T2"}, {"y_scale", "TS"}, {"y_zero_point", "T2"}},
           .type_variables = {{"T1", TypeSet{DataType::Float32}},
                              {"T2", TypeSet{DataType::UInt8}},
                              {"TS", TypeSet{DataType::Float32}}},
           .infer = infer_dynamic,
           .kernel = run_dynamic}};
}

}  // namespace tessera::ops
