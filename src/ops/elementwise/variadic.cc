// The elementwise ops with any number of inputs: Max, Mean, Min, Sum. Up to version 7 all inputs
// have one shape; since version 8 they are broadcast. Max and Min give NaN if any input is NaN.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "ops/broadcast.h"
#include "ops/convert_elements.h"
#include "ops/shape_arithmetic.h"

namespace tessera::ops {
namespace {

constexpr int kFirstBroadcastVersion = 8;

// --- Rule ----------------------------------------------------------------------------------------

// The common shape of all inputs; numbers are preferred to symbols.
std::optional<Shape> common_shape(const InferContext& context) {
  std::optional<Shape> common;
  for (size_t index = 0; index < context.input_count(); ++index) {
    const Shape* shape = context.shape(index);
    if (shape == nullptr) continue;
    if (!common) common = *shape;
    bool is_equal = common->size() == shape->size();
    for (size_t axis = 0; is_equal && axis < shape->size(); ++axis) {
      const Dim& dim = (*shape)[axis];
      Dim& common_dim = (*common)[axis];
      is_equal = dim == common_dim || !dim.is_known() || !common_dim.is_known();
      if (is_equal && dim.is_known()) common_dim = dim;
    }
    if (!is_equal) {
      context.fail_input(index, "expected shape " + text(*common) +
                                    " as the inputs before have, found " + text(*shape));
    }
  }
  return common;
}

void infer_variadic(InferContext& context) {
  const bool can_broadcast = context.version() >= kFirstBroadcastVersion;
  DataType element = DataType::Undefined;
  for (size_t index = 0; index < context.input_count(); ++index) {
    if (element == DataType::Undefined) element = context.element(index);
  }
  context.set_output(0, element, can_broadcast ? broadcast_inputs(context) : common_shape(context));
  const bool is_min = context.node().op == "Min";
  if (!is_min && context.node().op != "Max") return;
  set_elementwise_elements(context, [&](const std::vector<Dim>& arguments) {
    Dim result = arguments[0];
    for (size_t index = 1; index < arguments.size(); ++index) {
      result = is_min ? smaller_element(result, arguments[index])
                      : larger_element(result, arguments[index]);
    }
    return std::optional(result);
  });
}

// --- Kernel --------------------------------------------------------------------------------------

// Combines `count` elements with those at `result`; `step` is 0 if `elements` is a single broadcast
// element.
using Combine = void (*)(void* result, const void* elements, int64_t step, int64_t count);

template <class T, class Function>
void combine(void* result, const void* elements, int64_t step, int64_t count) {
  T* target = static_cast<T*>(result);
  const T* source = static_cast<const T*>(elements);
  for (int64_t index = 0; index < count; ++index) {
    target[index] = Function::of(target[index], source[index * step]);
  }
}

struct AddUp {
  static double of(double left, double right) { return left + right; }
};

struct Smaller {
  template <class T>
  static T of(T left, T right) {
    if (left != left) return left;
    return right < left || right != right ? right : left;
  }
};

struct Larger {
  template <class T>
  static T of(T left, T right) {
    if (left != left) return left;
    return right > left || right != right ? right : left;
  }
};

struct Replace {
  template <class T>
  static T of(T, T right) {
    return right;
  }
};

// The type in which elements of `type` are combined without loss.
DataType working_type(DataType type) {
  if (is_floating(type)) return DataType::Float64;
  return type == DataType::UInt64 ? DataType::UInt64 : DataType::Int64;
}

template <class Function>
Combine combine_in(DataType working) {
  if (working == DataType::Float64) return combine<double, Function>;
  if (working == DataType::UInt64) return combine<uint64_t, Function>;
  return combine<int64_t, Function>;
}

// The last operation on the combined elements.
using Finish = void (*)(double* elements, int64_t count, double inputs);

void run_combined(const KernelCall& call, Combine function, Finish finish) {
  const MutableTensorView& output = call.outputs[0];
  const DataType working = working_type(output.type);
  const Combine first = combine_in<Replace>(working);
  const int64_t size = element_bytes(output.type);
  std::pmr::vector<std::span<const int64_t>> shapes(&call.scratch);
  shapes.reserve(call.inputs.size());
  for (const TensorView& input : call.inputs) shapes.push_back(input.dims);
  const BroadcastLoop loop(output.dims, shapes, &call.scratch);
  const auto run_block = [&](const BroadcastLoop::Run& run, int64_t start, int64_t count) {
    // Elements of the working type, which has 8 bytes in every case.
    alignas(8) std::array<std::byte, 8 * kConvertBlock> result;
    alignas(8) std::array<std::byte, 8 * kConvertBlock> block;
    for (size_t index = 0; index < call.inputs.size(); ++index) {
      const int64_t step = loop.step(index);
      const auto* source = static_cast<const std::byte*>(call.inputs[index].data) +
                           (run.inputs[index] + start * step) * size;
      convert_elements(output.type, source, working, block.data(), step == 0 ? 1 : count);
      (index == 0 ? first : function)(result.data(), block.data(), step, count);
    }
    if (finish != nullptr) {
      finish(reinterpret_cast<double*>(result.data()), count,
             static_cast<double>(call.inputs.size()));
    }
    auto* target = static_cast<std::byte*>(output.data) + (run.output + start) * size;
    convert_elements(working, result.data(), output.type, target, count);
  };
  call.pool.parallel_for(output.elements, kElementGrain, [&](int64_t begin, int64_t end) {
    loop.for_each_run(begin, end, [&](const BroadcastLoop::Run& run) {
      for (int64_t start = 0; start < run.length; start += kConvertBlock) {
        run_block(run, start, std::min(kConvertBlock, run.length - start));
      }
    });
  });
}

void run_sum(const KernelCall& call) { run_combined(call, combine<double, AddUp>, nullptr); }

void run_mean(const KernelCall& call) {
  run_combined(call, combine<double, AddUp>, [](double* elements, int64_t count, double inputs) {
    for (int64_t index = 0; index < count; ++index) elements[index] /= inputs;
  });
}

void run_min(const KernelCall& call) {
  run_combined(call, combine_in<Smaller>(working_type(call.outputs[0].type)), nullptr);
}

void run_max(const KernelCall& call) {
  run_combined(call, combine_in<Larger>(working_type(call.outputs[0].type)), nullptr);
}

// --- Schemas -------------------------------------------------------------------------------------

int64_t variadic_flops(const Node& node, std::span<const Type> inputs,
                       std::span<const Type> outputs) {
  return static_cast<int64_t>(inputs.size()) * flops_per_output(node, inputs, outputs);
}

Op variadic_op(const char* name, const char* output, std::vector<int> versions, TypeSet types,
               ReferenceKernel kernel, uint32_t traits = kNoTrait) {
  return {.name = name,
          .versions = std::move(versions),
          .inputs = {{"data_0", "T", Arity::Variadic}},
          .outputs = {{output, "T"}},
          .type_variables = {{"T", types}},
          .traits = kElementwise | traits,
          .infer = infer_variadic,
          .flops = variadic_flops,
          .kernel = kernel};
}

}  // namespace

std::vector<Op> variadic_ops() {
  return {variadic_op("Max", "max", {6, 8, 12, 13}, kNumericTypes, run_max),
          variadic_op("Mean", "mean", {6, 8, 13}, kFloatTypes, run_mean, kBoundsMagnitude),
          variadic_op("Min", "min", {6, 8, 12, 13}, kNumericTypes, run_min),
          variadic_op("Sum", "sum", {6, 8, 13}, kFloatTypes, run_sum, kBoundsMagnitude)};
}

}  // namespace tessera::ops
