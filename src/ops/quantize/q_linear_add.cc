// QLinearAdd, QLinearMul and MulInteger of com.microsoft: two tensors of bytes, which are
// broadcast. https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
#include <string>

#include "ops/broadcast.h"
#include "ops/domains.h"
#include "ops/quantize/quantization.h"

namespace tessera::ops {
namespace {

// The inputs of QLinearAdd and QLinearMul.
enum QuantizedPair : size_t {
  kPairLeft,
  kPairLeftScale,
  kPairLeftZero,
  kPairRight,
  kPairRightScale,
  kPairRightZero,
  kPairScale,
  kPairZero,
};
// The inputs of MulInteger.
enum IntegerPair : size_t { kIntegerLeft, kIntegerLeftZero, kIntegerRight, kIntegerRightZero };

void set_broadcast_pair(InferContext& context, size_t right, DataType type) {
  const Shape* const left_shape = context.shape(0);
  const Shape* const right_shape = context.shape(right);
  context.set_output(0, type);
  if (left_shape == nullptr || right_shape == nullptr) return;
  std::optional<Shape> shape = broadcast(*left_shape, *right_shape);
  if (!shape) {
    context.fail_input(right, "expected a shape that broadcasts with input 'A' ([" +
                                  text(*left_shape) + "]), found [" + text(*right_shape) + "]");
  }
  context.set_output(0, type, std::move(shape));
}

void infer_quantized_pair(InferContext& context) {
  check_tensor_scale(context, kPairLeftScale, kPairLeftZero);
  check_tensor_scale(context, kPairRightScale, kPairRightZero);
  check_tensor_scale(context, kPairScale, kPairZero);
  const DataType left = context.element(kPairLeft);
  set_broadcast_pair(context, kPairRight,
                     left != DataType::Undefined ? left : context.element(kPairRight));
}

void infer_integer_pair(InferContext& context) {
  check_one_element(context, kIntegerLeftZero);
  check_one_element(context, kIntegerRightZero);
  set_broadcast_pair(context, kIntegerRight, DataType::Int32);
}

// Sets the output to combine(element of input 0, element of input `right`).
template <class T, class Result, class Combine>
void combine_pairs(const KernelCall& call, size_t right, const Combine& combine) {
  const T* const left_elements = call.inputs[0].as<T>().data();
  const T* const right_elements = call.inputs[right].as<T>().data();
  Result* const output = call.outputs[0].as<Result>().data();
  const BroadcastLoop loop(call.outputs[0].dims, {call.inputs[0].dims, call.inputs[right].dims},
                           &call.scratch);
  const auto combine_run = [&](const BroadcastLoop::Run& run) {
    const T* const one = left_elements + run.inputs[0];
    const T* const other = right_elements + run.inputs[1];
    for (int64_t index = 0; index < run.length; ++index) {
      output[run.output + index] = combine(one[index * loop.step(0)], other[index * loop.step(1)]);
    }
  };
  call.pool.parallel_for(call.outputs[0].elements, kElementGrain, [&](int64_t begin, int64_t end) {
    loop.for_each_run(begin, end, combine_run);
  });
}

template <bool kIsSum>
void run_quantized_pair(const KernelCall& call) {
  const TensorScale left = tensor_scale_of(call, kPairLeftScale, kPairLeftZero);
  const TensorScale right = tensor_scale_of(call, kPairRightScale, kPairRightZero);
  const TensorScale result = tensor_scale_of(call, kPairScale, kPairZero);
  visit_byte(call.outputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    // Products of a byte and a float32 number are exact in float64.
    const auto lefts = byte_table<T, double>([&](T element) { return left.real_of(element); });
    const auto rights = byte_table<T, double>([&](T element) { return right.real_of(element); });
    combine_pairs<T, T>(call, kPairRight, [&](T one, T other) {
      const double left_real = lefts[table_index(one)];
      const double right_real = rights[table_index(other)];
      return result.integer_of<T>(kIsSum ? left_real + right_real : left_real * right_real);
    });
  });
}

void run_integer_pair(const KernelCall& call) {
  const auto left = static_cast<int32_t>(zero_point_of(call, kIntegerLeftZero));
  const auto right = static_cast<int32_t>(zero_point_of(call, kIntegerRightZero));
  visit_byte(call.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    combine_pairs<T, int32_t>(call, kIntegerRight,
                              [&](T one, T other) { return (one - left) * (other - right); });
  });
}

Op quantized_pair_op(const char* name, ReferenceKernel kernel) {
  return {.name = name,
          .domain = kMicrosoftDomain,
          .versions = {1},
          .inputs = {{"A", "T"},
                     {"A_scale", "TS"},
                     {"A_zero_point", "T", Arity::Optional},
                     {"B", "T"},
                     {"B_scale", "TS"},
                     {"B_zero_point", "T", Arity::Optional},
                     {"C_scale", "TS"},
                     {"C_zero_point", "T", Arity::Optional}},
          .outputs = {{"C", "T"}},
          .type_variables = {{"T", kByteTypes}, {"TS", TypeSet{DataType::Float32}}},
          .infer = infer_quantized_pair,
          .kernel = std::move(kernel)};
}

}  // namespace

std::vector<Op> q_linear_add_ops() {
  Op integers = {.name = "MulInteger",
                 .domain = kMicrosoftDomain,
                 .versions = {1},
                 .inputs = {{"A", "T"},
                            {"A_zero_point", "T", Arity::Optional},
                            {"B", "T"},
                            {"B_zero_point", "T", Arity::Optional}},
                 .outputs = {{"C", "T1"}},
                 .type_variables = {{"T", kByteTypes}, {"T1", TypeSet{DataType::Int32}}},
                 .infer = infer_integer_pair,
                 .kernel = run_integer_pair};
  return {quantized_pair_op("QLinearAdd", run_quantized_pair<true>),
          quantized_pair_op("QLinearMul", run_quantized_pair<false>), std::move(integers)};
}

}  // namespace tessera::ops
