// The binary ops except Pow: arithmetic, comparisons, logic and bits.
#include <algorithm>
#include <limits>
#include <string>

#include "codegen/lowering/lower_op.h"

namespace tessera::codegen {
namespace {

using Id = InstructionId;
using Builder = ExpressionBuilder;

// --- Arithmetic ----------------------------------------------------------------------------------

template <Id (Builder::*kOperation)(Id left, Id right)>
Id lower_pair(const Lowering& lowering) {
  return (lowering.builder.*kOperation)(lowering.number(0), lowering.number(1));
}

// Integers are divided by constants only, because a divisor of 0 is an error of the run, and
// kernels of groups report none.
std::string keep_divisor(const Graph& graph, const Node& node, FusionRole& role) {
  if (is_floating(graph[node.inputs[0]].type.element)) return "";
  const std::optional<int64_t> divisor = constant_integer(graph, node.inputs[1]);
  if (!divisor) return "divides integers by one constant number only";
  if (*divisor == 0) return "divides integers by zero";
  role.input_dims[1].clear();
  return "";
}

std::string place_quotient(const Graph& graph, const Node& node, FusionRole& role) {
  place_broadcast(graph, node, role);
  return keep_divisor(graph, node, role);
}

std::string place_aligned_quotient(const Graph& graph, const Node& node, FusionRole& role) {
  std::string reason = place_aligned(graph, node, role);
  return reason.empty() ? keep_divisor(graph, node, role) : reason;
}

// The divisor of integers, as an element of their type.
struct Divisor {
  Id id = -1;
  bool is_minus_one = false;  // of a signed type
  bool is_negative = false;
};

Divisor divisor_of(const Lowering& lowering) {
  const DataType type = lowering.input_type(0);
  const int64_t value = constant_integer(lowering.graph, lowering.node.inputs[1]).value_or(1);
  const int64_t bits = 8 * element_bytes(type);
  const uint64_t mask = std::numeric_limits<uint64_t>::max() >> (64 - bits);
  const bool is_signed = is_signed_integer(type);
  return {lowering.builder.constant_bits(type, static_cast<uint64_t>(value) & mask),
          is_signed && value == -1, is_signed && value < 0};
}

Id lower_quotient(const Lowering& lowering) {
  if (is_floating(lowering.input_type(0))) return lower_pair<&Builder::divide>(lowering);
  const Divisor divisor = divisor_of(lowering);
  const Id x = lowering.input(0);
  // The minimum divided by -1 wraps around to itself.
  return divisor.is_minus_one ? lowering.builder.negate(x) : lowering.builder.divide(x, divisor.id);
}

Id lower_modulus(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const Divisor divisor = divisor_of(lowering);
  const DataType type = lowering.input_type(0);
  const Id x = lowering.input(0);
  // Division by -1 leaves no remainder, as division by 1 does.
  if (divisor.is_minus_one) return builder.remainder(x, builder.number(type, 1));
  const Id remainder = builder.remainder(x, divisor.id);
  if (lowering.node.attributes.get_int("fmod") != 0 || !is_signed_integer(type)) return remainder;
  // The remainder of floored division has the sign of the divisor.
  const Id zero = builder.number(type, 0);
  const Id is_wrong =
      divisor.is_negative ? builder.less(zero, remainder) : builder.less(remainder, zero);
  return builder.select(is_wrong, builder.add(remainder, divisor.id), remainder);
}

// --- Comparisons ---------------------------------------------------------------------------------

template <Id (Builder::*kComparison)(Id left, Id right)>
Id lower_swapped(const Lowering& lowering) {
  return (lowering.builder.*kComparison)(lowering.number(1), lowering.number(0));
}

// --- Bits ----------------------------------------------------------------------------------------

DataType unsigned_type(DataType type) {
  switch (type) {
    case DataType::Int8:
      return DataType::UInt8;
    case DataType::Int16:
      return DataType::UInt16;
    case DataType::Int32:
      return DataType::UInt32;
    case DataType::Int64:
      return DataType::UInt64;
    default:
      return type;
  }
}

// If the count is negative or at least the width, the result consists of sign bits.
Id lower_shift(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const DataType type = lowering.input_type(0);
  const auto width = static_cast<double>(8 * element_bytes(type));
  const Id x = lowering.input(0);
  const Id given = lowering.input(1);
  const Id last = builder.number(type, width - 1);
  const Id bits = builder.bit_cast(given, unsigned_type(type));
  const Id is_within = builder.less(bits, builder.number(unsigned_type(type), width));
  const Id count = builder.bit_and(given, last);
  if (lowering.node.attributes.get_string("direction") == "LEFT") {
    return builder.select(is_within, builder.shift_left(x, count), builder.number(type, 0));
  }
  if (!is_signed_integer(type)) {
    return builder.select(is_within, builder.shift_right(x, count), builder.number(type, 0));
  }
  return builder.shift_right(x, builder.select(is_within, count, last));
}

// --- The table -----------------------------------------------------------------------------------

constexpr int kLastAlignedVersion = 6;

// The rows of an op whose older versions align the right operand by attributes.
constexpr FusionRow aligned(FusionRow row) {
  row.place = row.place == place_quotient ? place_aligned_quotient : place_aligned;
  row.until = kLastAlignedVersion;
  return row;
}

constexpr FusionRow numpy(FusionRow row) {
  row.since = kLastAlignedVersion + 1;
  return row;
}

constexpr FusionRow binary_op(std::string_view name, ops::TypeSet types,
                              Id (*lower)(const Lowering&)) {
  return {name, FusionKind::Elementwise, types, lower, place_broadcast};
}

constexpr FusionRow kAdd = binary_op("Add", ops::kNumericTypes, lower_pair<&Builder::add>);
constexpr FusionRow kAnd = binary_op("And", ops::kBoolType, lower_pair<&Builder::bit_and>);
constexpr FusionRow kDiv = {"Div", FusionKind::Elementwise, ops::kNumericTypes, lower_quotient,
                            place_quotient};
constexpr FusionRow kEqual = binary_op("Equal", ops::kAllTypes, lower_pair<&Builder::equal>);
constexpr FusionRow kGreater =
    binary_op("Greater", ops::kNumericTypes, lower_swapped<&Builder::less>);
constexpr FusionRow kLess = binary_op("Less", ops::kNumericTypes, lower_pair<&Builder::less>);
constexpr FusionRow kMul = binary_op("Mul", ops::kNumericTypes, lower_pair<&Builder::multiply>);
constexpr FusionRow kOr = binary_op("Or", ops::kBoolType, lower_pair<&Builder::bit_or>);
constexpr FusionRow kSub = binary_op("Sub", ops::kNumericTypes, lower_pair<&Builder::subtract>);
constexpr FusionRow kXor = binary_op("Xor", ops::kBoolType, lower_pair<&Builder::bit_xor>);

constexpr FusionRow kBinaryRows[] = {
    aligned(kAdd),
    numpy(kAdd),
    aligned(kAnd),
    numpy(kAnd),
    binary_op("BitShift", ops::kIntegerTypes, lower_shift),
    binary_op("BitwiseAnd", ops::kIntegerTypes, lower_pair<&Builder::bit_and>),
    binary_op("BitwiseOr", ops::kIntegerTypes, lower_pair<&Builder::bit_or>),
    binary_op("BitwiseXor", ops::kIntegerTypes, lower_pair<&Builder::bit_xor>),
    aligned(kDiv),
    numpy(kDiv),
    aligned(kEqual),
    numpy(kEqual),
    aligned(kGreater),
    numpy(kGreater),
    binary_op("GreaterOrEqual", ops::kNumericTypes, lower_swapped<&Builder::less_or_equal>),
    aligned(kLess),
    numpy(kLess),
    binary_op("LessOrEqual", ops::kNumericTypes, lower_pair<&Builder::less_or_equal>),
    {"Mod", FusionKind::Elementwise, ops::kIntegerTypes, lower_modulus, place_quotient},
    aligned(kMul),
    numpy(kMul),
    aligned(kOr),
    numpy(kOr),
    aligned(kSub),
    numpy(kSub),
    aligned(kXor),
    numpy(kXor),
};

}  // namespace

std::span<const FusionRow> binary_rows() { return kBinaryRows; }

}  // namespace tessera::codegen
