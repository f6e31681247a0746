// The unary arithmetic functions, predicates and logic (ops/elementwise/unary.cc).
#include <limits>

#include "codegen/lowering/lower_op.h"
#include "codegen/math/math_functions.h"

namespace tessera::codegen {
namespace {

using Id = InstructionId;
using Builder = ExpressionBuilder;

template <Id (Builder::*kOperation)(Id x)>
Id lower_operation(const Lowering& lowering) {
  return (lowering.builder.*kOperation)(lowering.number(0));
}

template <Id (*kFunction)(Builder& builder, Id x)>
Id lower_function(const Lowering& lowering) {
  return kFunction(lowering.builder, lowering.number(0));
}

Id lower_abs(const Lowering& lowering) {
  const DataType type = lowering.input_type(0);
  const Id x = lowering.number(0);
  const bool is_unsigned = is_integer(type) && !is_signed_integer(type);
  return is_unsigned ? x : lowering.builder.absolute(x);
}

Id lower_reciprocal(const Lowering& lowering) {
  const Id x = lowering.number(0);
  return lowering.builder.divide(lowering.builder.number(lowering.builder.type(x), 1), x);
}

// Zeros and NaN stay what they are.
Id lower_sign(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const Id x = lowering.number(0);
  const DataType type = builder.type(x);
  const Id zero = builder.number(type, 0);
  const Id positive = builder.select(builder.less(zero, x), builder.number(type, 1), x);
  if (is_integer(type) && !is_signed_integer(type)) return positive;
  return builder.select(builder.less(x, zero), builder.number(type, -1), positive);
}

Id lower_is_nan(const Lowering& lowering) {
  const Id x = lowering.number(0);
  return lowering.builder.bit_not(lowering.builder.equal(x, x));
}

Id lower_is_inf(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const Id x = lowering.number(0);
  const bool detects_negative = lowering.node.attributes.get_int("detect_negative") != 0;
  const bool detects_positive = lowering.node.attributes.get_int("detect_positive") != 0;
  const double infinity = std::numeric_limits<double>::infinity();
  const Id positive = builder.number(builder.type(x), infinity);
  if (detects_negative && detects_positive) return builder.equal(builder.absolute(x), positive);
  if (detects_positive) return builder.equal(x, positive);
  if (detects_negative) return builder.equal(x, builder.number(builder.type(x), -infinity));
  return builder.less(x, x);  // always false
}

// The types that are computed in float32: sin and cos have no expression in float64.
constexpr ops::TypeSet kNarrowFloatTypes = {DataType::Float16, DataType::BFloat16,
                                            DataType::Float32};

constexpr FusionRow unary_op(std::string_view name, Id (*lower)(const Lowering&),
                             ops::TypeSet types = ops::kFloatTypes, ErrorBound float32 = {},
                             ErrorBound float64 = {}) {
  return {name, FusionKind::Elementwise, types, lower, place_first, float32, float64};
}

constexpr FusionRow kUnaryRows[] = {
    unary_op("Abs", lower_abs, ops::kNumericTypes),
    unary_op("BitwiseNot", lower_operation<&Builder::bit_not>, ops::kIntegerTypes),
    unary_op("Ceil", lower_operation<&Builder::ceiling>),
    unary_op("Cos", lower_function<cos>, kNarrowFloatTypes, {2}),
    unary_op("Erf", lower_function<erf>, ops::kFloatTypes, {2}, {2}),
    unary_op("Exp", lower_function<exp>, ops::kFloatTypes, {2}, {2}),
    unary_op("Floor", lower_operation<&Builder::floor>),
    unary_op("IsInf", lower_is_inf),
    unary_op("IsNaN", lower_is_nan),
    unary_op("Log", lower_function<log>, ops::kFloatTypes, {2}, {2}),
    unary_op("Neg", lower_operation<&Builder::negate>, ops::kFloatTypes | ops::kSignedIntegerTypes),
    unary_op("Not", lower_operation<&Builder::bit_not>, ops::kBoolType),
    unary_op("Reciprocal", lower_reciprocal),
    unary_op("Round", lower_operation<&Builder::round>),
    unary_op("Sign", lower_sign, ops::kNumericTypes),
    unary_op("Sin", lower_function<sin>, kNarrowFloatTypes, {2}),
    unary_op("Sqrt", lower_operation<&Builder::square_root>),
};

}  // namespace

std::span<const FusionRow> unary_rows() { return kUnaryRows; }

}  // namespace tessera::codegen
