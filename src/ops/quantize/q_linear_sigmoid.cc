// QLinearSigmoid and QLinearLeakyRelu of com.microsoft: functions of single bytes, by a table.
// https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
#include <cmath>

#include "ops/domains.h"
#include "ops/quantize/quantization.h"

namespace tessera::ops {
namespace {

void infer_quantized_function(InferContext& context) {
  check_tensor_scale(context, 1, 2);
  check_tensor_scale(context, 3, 4);
  context.set_output(0, context.element(0), context.input(0).type.shape);
}

template <class Function>
void run_quantized_function(const KernelCall& call, const Function& function) {
  const TensorScale from = tensor_scale_of(call, 1, 2);
  const TensorScale to = tensor_scale_of(call, 3, 4);
  visit_byte(call.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const ByteTable<T> table = byte_table<T, T>(
        [&](T element) { return to.template integer_of<T>(function(from.real_of(element))); });
    const T* const input = call.inputs[0].as<T>().data();
    T* const output = call.outputs[0].as<T>().data();
    call.pool.parallel_for(call.outputs[0].elements, kElementGrain,
                           [&](int64_t begin, int64_t end) {
                             for (int64_t index = begin; index < end; ++index) {
                               output[index] = table[table_index(input[index])];
                             }
                           });
  });
}

void run_quantized_sigmoid(const KernelCall& call) {
  run_quantized_function(call, [](double real) { return 1 / (1 + std::exp(-real)); });
}

void run_quantized_leaky_relu(const KernelCall& call) {
  const double alpha = call.node.attributes.get_float("alpha");
  run_quantized_function(call, [&](double real) { return real < 0 ? alpha * real : real; });
}

Op quantized_function_op(const char* name, ReferenceKernel kernel) {
  return {.name = name,
          .domain = kMicrosoftDomain,
          .versions = {1},
          .inputs = {{"X", "T"},
                     {"X_scale", "TS"},
                     {"X_zero_point", "T", Arity::Optional},
                     {"Y_scale", "TS"},
                     {"Y_zero_point", "T", Arity::Optional}},
          .outputs = {{"Y", "T"}},
          .type_variables = {{"T", kByteTypes}, {"TS", TypeSet{DataType::Float32}}},
          .infer = infer_quantized_function,
          .kernel = std::move(kernel)};
}

}  // namespace

std::vector<Op> q_linear_sigmoid_ops() {
  Op leaky_relu = quantized_function_op("QLinearLeakyRelu", run_quantized_leaky_relu);
  leaky_relu.attributes = {{"alpha", AttributeKind::Float, 0.01F}};
  return {quantized_function_op("QLinearSigmoid", run_quantized_sigmoid), std::move(leaky_relu)};
}

}  // namespace tessera::ops
