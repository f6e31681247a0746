// The unary arithmetic functions, one row each in kFloatFunctions, and those that also take
// integers or give bools. activation.cc has the activation functions.
#include "ops/elementwise/unary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/tensor/small_types.h"
#include "ops/convert_elements.h"
#include "ops/shape_arithmetic.h"

namespace tessera::ops {
namespace {

double negated(double x) { return -x; }
double reciprocal(double x) { return 1 / x; }
double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }  // propagates NaN

struct FloatFunction {
  const char* name;
  const char* input;
  const char* output;
  std::vector<int> versions;
  ReferenceKernel kernel;
  uint32_t traits = kNoTrait;  // in addition to kElementwise
};

const FloatFunction kFloatFunctions[] = {
    {"Acos", "input", "output", {7, 22}, run_unary<std::acos>},
    {"Acosh", "input", "output", {9, 22}, run_unary<std::acosh>},
    {"Asin", "input", "output", {7, 22}, run_unary<std::asin>, kKeepsZero},
    {"Asinh", "input", "output", {9, 22}, run_unary<std::asinh>, kKeepsZero},
    {"Atan", "input", "output", {7, 22}, run_unary<std::atan>, kKeepsZero},
    {"Atanh", "input", "output", {9, 22}, run_unary<std::atanh>, kKeepsZero},
    {"Ceil", "X", "Y", {6, 13}, run_unary<std::ceil>, kKeepsZero},
    {"Cos", "input", "output", {7, 22}, run_unary<std::cos>},
    {"Cosh", "input", "output", {9, 22}, run_unary<std::cosh>},
    {"Exp", "input", "output", {6, 13}, run_unary<std::exp>},
    {"Floor", "X", "Y", {6, 13}, run_unary<std::floor>, kKeepsZero},
    {"Log", "input", "output", {6, 13}, run_unary<std::log>},
    {"Reciprocal", "X", "Y", {6, 13}, run_unary<reciprocal>},
    {"Round", "X", "Y", {11, 22}, run_unary<std::nearbyint>, kKeepsZero},  // ties to even
    {"Sin", "input", "output", {7, 22}, run_unary<std::sin>, kKeepsZero},
    {"Sinh", "input", "output", {9, 22}, run_unary<std::sinh>, kKeepsZero},
    {"Sqrt", "X", "Y", {6, 13}, run_unary<std::sqrt>, kKeepsZero},
    {"Tan", "input", "output", {7, 22}, run_unary<std::tan>, kKeepsZero},
};

void run_neg(const KernelCall& call) {
  if (!is_integer(call.inputs[0].type)) return run_unary<negated>(call);
  // Unsigned, because the minimum has no negative and wraps to itself.
  run_on_integers(call, [](auto x) { return uint64_t{0} - static_cast<uint64_t>(x); });
}

void run_abs(const KernelCall& call) {
  if (!is_integer(call.inputs[0].type)) return run_unary<std::fabs>(call);
  run_on_integers(call, [](auto x) {
    const auto bits = static_cast<uint64_t>(x);
    if constexpr (std::is_signed_v<decltype(x)>) {
      return x < 0 ? uint64_t{0} - bits : bits;
    } else {
      return bits;
    }
  });
}

void run_sign(const KernelCall& call) {
  if (!is_integer(call.inputs[0].type)) return run_unary<sign>(call);
  run_on_integers(call, [](auto x) { return (x > 0 ? 1 : 0) - (x < 0 ? 1 : 0); });
}

void run_bitwise_not(const KernelCall& call) {
  run_on_integers(call, [](auto x) { return ~static_cast<uint64_t>(x); });
}

void run_not(const KernelCall& call) {
  const uint8_t* input = call.inputs[0].as<uint8_t>().data();
  uint8_t* output = call.outputs[0].as<uint8_t>().data();
  call.pool.parallel_for(call.outputs[0].elements, kElementGrain, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) output[index] = input[index] == 0;
  });
}

// Evaluates `predicate` for each element of a floating input.
template <class Predicate>
void run_predicate(const KernelCall& call, const Predicate& predicate) {
  const TensorView& input = call.inputs[0];
  uint8_t* output = call.outputs[0].as<uint8_t>().data();
  if (is_small(input.type)) {
    const std::array<float, 256>& values = small_float_values(input.type);
    const auto* const bytes = static_cast<const uint8_t*>(input.data);
    return call.pool.parallel_for(input.elements, kElementGrain, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        output[index] = predicate(values[bytes[index]]) ? 1 : 0;
      }
    });
  }
  visit_floating(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* elements = input.as<T>().data();
    call.pool.parallel_for(input.elements, kElementGrain, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        output[index] = predicate(static_cast<compute_t<T>>(elements[index])) ? 1 : 0;
      }
    });
  });
}

void run_is_nan(const KernelCall& call) {
  run_predicate(call, [](auto x) { return std::isnan(x); });
}

void run_is_inf(const KernelCall& call) {
  const bool detects_negative = call.node.attributes.get_int("detect_negative") != 0;
  const bool detects_positive = call.node.attributes.get_int("detect_positive") != 0;
  run_predicate(
      call, [=](auto x) { return std::isinf(x) && (x < 0 ? detects_negative : detects_positive); });
}

void infer_test_of_number(InferContext& context) {
  context.set_output(0, DataType::Bool, context.input(0).type.shape);
}

void infer_neg(InferContext& context) {
  infer_same_as_input(context);
  set_elementwise_elements(context, [](const std::vector<Dim>& arguments) {
    return subtract_elements(0, arguments[0]);
  });
}

void infer_abs(InferContext& context) {
  infer_same_as_input(context);
  set_elementwise_elements(context, [](const std::vector<Dim>& arguments) -> std::optional<Dim> {
    if (is_non_negative(arguments[0])) return arguments[0];
    if (arguments[0].is_known()) return subtract_elements(0, arguments[0]);
    return expression("abs", arguments);
  });
}

void infer_sign(InferContext& context) {
  infer_same_as_input(context);
  set_elementwise_elements(context, [](const std::vector<Dim>& arguments) -> std::optional<Dim> {
    if (!arguments[0].is_known()) return std::nullopt;
    return Dim((arguments[0].value() > 0 ? 1 : 0) - (arguments[0].value() < 0 ? 1 : 0));
  });
}

void infer_not(InferContext& context) {
  infer_same_as_input(context);
  set_elementwise_elements(context, [](const std::vector<Dim>& arguments) {
    return std::optional<Dim>(equal_elements(arguments[0], 0));
  });
}

Op with_rule(Op op, InferRule rule) {
  op.infer = rule;
  return op;
}

Op question_op(const char* name, std::vector<int> versions, ReferenceKernel kernel) {
  Op op = unary_op(name, "X", "Y", std::move(versions), kFloatTypes, kernel);
  op.inputs = {{"X", "T1"}};
  op.outputs = {{"Y", "T2"}};
  op.type_variables = {{"T1", kFloatTypes, {{20, kFloat8Types}}}, {"T2", kBoolType}};
  op.infer = infer_test_of_number;
  return op;
}

}  // namespace

void infer_same_as_input(InferContext& context) {
  context.set_output(0, context.element(0), context.input(0).type.shape);
}

Op keeping_zero(Op op) {
  op.traits |= kKeepsZero;
  return op;
}

Op non_expansive(Op op) {
  op.traits |= kNonExpansive;
  return op;
}

Op unary_op(const std::string& name, const std::string& input, const std::string& output,
            std::vector<int> versions, TypeSet types, ReferenceKernel kernel) {
  return {.name = name,
          .versions = std::move(versions),
          .inputs = {{input, "T"}},
          .outputs = {{output, "T"}},
          .type_variables = {{"T", types}},
          .traits = kElementwise,
          .infer = infer_same_as_input,
          .kernel = kernel};
}

void run_on_doubles(const KernelCall& call, DoubleFunction function) {
  const TensorView& input = call.inputs[0];
  const MutableTensorView& output = call.outputs[0];
  const int64_t size = element_bytes(input.type);
  const auto* source = static_cast<const std::byte*>(input.data);
  auto* target = static_cast<std::byte*>(output.data);
  call.pool.parallel_for(output.elements, kElementGrain, [&](int64_t begin, int64_t end) {
    std::array<double, kConvertBlock> block;
    for (int64_t start = begin; start < end; start += kConvertBlock) {
      const int64_t count = std::min(kConvertBlock, end - start);
      convert_elements(input.type, source + start * size, DataType::Float64, block.data(), count);
      function({block.data(), static_cast<size_t>(count)}, call.node.attributes);
      convert_elements(DataType::Float64, block.data(), output.type, target + start * size, count);
    }
  });
}

std::vector<Op> unary_ops() {
  std::vector<Op> ops;
  for (const FloatFunction& row : kFloatFunctions) {
    Op op = unary_op(row.name, row.input, row.output, row.versions, kFloatTypes, row.kernel);
    op.traits |= row.traits;
    ops.push_back(std::move(op));
  }
  const auto add_signed = [&](Op op, InferRule rule) {
    ops.push_back(keeping_zero(with_rule(std::move(op), std::move(rule))));
  };
  add_signed(
      non_expansive(unary_op("Neg", "X", "Y", {6, 13}, kFloatTypes | kSignedIntegerTypes, run_neg)),
      infer_neg);
  add_signed(non_expansive(unary_op("Abs", "X", "Y", {6, 13}, kNumericTypes, run_abs)), infer_abs);
  add_signed(unary_op("Sign", "input", "output", {9, 13}, kNumericTypes, run_sign), infer_sign);
  // Version 9 allows integers too: the result is truncated.
  ops.push_back(keeping_zero(
      unary_op("Erf", "input", "output", {9, 13}, kNumericTypes, run_unary<std::erf>)));
  ops.push_back(with_rule(unary_op("Not", "X", "Y", {1}, kBoolType, run_not), infer_not));
  ops.push_back(unary_op("BitwiseNot", "X", "Y", {18}, kIntegerTypes, run_bitwise_not));
  ops.push_back(question_op("IsNaN", {9, 13, 20}, run_is_nan));
  Op is_inf = question_op("IsInf", {10, 20}, run_is_inf);
  is_inf.attributes = {{"detect_negative", AttributeKind::Int, int64_t{1}},
                       {"detect_positive", AttributeKind::Int, int64_t{1}}};
  ops.push_back(std::move(is_inf));
  return ops;
}

}  // namespace tessera::ops
