// The elementwise ops that choose, combine or broadcast their inputs: Clip, Expand, Max, Mean, Min,
// PRelu, Sum, Where.
#include <bit>
#include <cmath>
#include <string>

#include "base/tensor/float16.h"
#include "codegen/lowering/lower_op.h"

namespace tessera::codegen {
namespace {

using Id = InstructionId;
using Builder = ExpressionBuilder;

// --- Variadic ops --------------------------------------------------------------------------------

// The first of two equal numbers; NaN if one of them is NaN.
template <bool kIsMax>
Id extreme(Builder& builder, Id left, Id right) {
  const Id is_right = kIsMax ? builder.less(left, right) : builder.less(right, left);
  if (is_integer(builder.type(left))) return builder.select(is_right, right, left);
  // If both comparisons are false, right is NaN.
  return builder.select(is_right, right, builder.select(builder.equal(right, right), left, right));
}

template <bool kIsMax>
Id lower_extreme(const Lowering& lowering) {
  Id result = lowering.number(0);
  for (size_t index = 1; index < lowering.node.inputs.size(); ++index) {
    result = extreme<kIsMax>(lowering.builder, result, lowering.number(index));
  }
  return result;
}

// The reference adds in float64 and rounds once. In float32, two numbers give the same bits; the
// errors of more numbers could cancel to anything, so they are added in float64, too.
Id lower_sum_of_inputs(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const size_t count = lowering.node.inputs.size();
  const bool is_mean = lowering.node.op == "Mean";
  const auto addend = [&](size_t index) {
    const Id x = lowering.number(index);
    return is_mean || count > 2 ? builder.convert(x, DataType::Float64) : x;
  };
  Id sum = addend(0);
  for (size_t index = 1; index < count; ++index) sum = builder.add(sum, addend(index));
  if (!is_mean) return sum;
  return builder.divide(sum, builder.number(DataType::Float64, static_cast<double>(count)));
}

// --- Where and PRelu -----------------------------------------------------------------------------

Id lower_where(const Lowering& lowering) {
  return lowering.builder.select(lowering.input(0), lowering.input(1), lowering.input(2));
}

Id lower_prelu(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const Id x = lowering.number(0);
  const DataType type = builder.type(x);
  if (is_integer(type) && !is_signed_integer(type)) return x;
  const Id zero = builder.number(type, 0);
  const Id product = builder.multiply(x, lowering.number(1));
  if (is_integer(type)) return builder.select(builder.less(x, zero), product, x);
  // Zero times a slope of NaN is NaN.
  return builder.select(builder.less(zero, x), x, product);
}

// A vector of slopes has one for each channel.
std::string place_channel_slopes(const Graph& graph, const Node& node, FusionRole& role) {
  const size_t rank = dims_of(graph, node.inputs[0]).size();
  std::vector<int64_t> slope = dims_of(graph, node.inputs[1]);
  if (slope.size() == 1 && rank >= 2) slope.resize(rank - 1, 1);
  role.input_dims[0] = dims_of(graph, node.inputs[0]);
  role.input_dims[1] = padded(std::move(slope), rank);
  return "";
}

// --- Clip ----------------------------------------------------------------------------------------

// An attribute, rounded to the element type first, as an input would be.
Id attribute_bound(const Lowering& lowering, std::string_view name) {
  const float bound = lowering.node.attributes.get_float(name);
  const DataType type = lowering.input_type(0);
  float rounded = bound;
  if (type == DataType::Float16) rounded = static_cast<float>(Float16(bound));
  if (type == DataType::BFloat16) rounded = static_cast<float>(BFloat16(bound));
  return lowering.builder.number(computed_type(type), static_cast<double>(rounded));
}

// Whether `x` may be NaN: known for constants.
bool can_be_nan(const Builder& builder, Id x) {
  const Instruction& instruction = builder.instructions()[static_cast<size_t>(x)];
  if (is_integer(instruction.type)) return false;
  if (instruction.operation != Operation::Constant) return true;
  return instruction.type == DataType::Float32
             ? std::isnan(std::bit_cast<float>(static_cast<uint32_t>(instruction.bits)))
             : std::isnan(std::bit_cast<double>(instruction.bits));
}

// The bound instead of x if x is beyond it or if it is NaN.
template <bool kIsLow>
Id clipped(Builder& builder, Id x, Id bound) {
  const Id is_beyond = kIsLow ? builder.less(x, bound) : builder.less(bound, x);
  if (!can_be_nan(builder, bound)) return builder.select(is_beyond, bound, x);
  const Id is_nan = builder.bit_not(builder.equal(bound, bound));
  return builder.select(builder.bit_or(is_beyond, is_nan), bound, x);
}

Id lower_clip(const Lowering& lowering) {
  Id x = lowering.number(0);
  if (lowering.has_input(1)) x = clipped<true>(lowering.builder, x, lowering.number(1));
  if (lowering.has_input(2)) x = clipped<false>(lowering.builder, x, lowering.number(2));
  return x;
}

// The old versions of Clip leave integers as they are.
Id lower_clip_by_attributes(const Lowering& lowering) {
  const Id x = lowering.number(0);
  if (is_integer(lowering.input_type(0))) return x;
  const Id above = clipped<true>(lowering.builder, x, attribute_bound(lowering, "min"));
  return clipped<false>(lowering.builder, above, attribute_bound(lowering, "max"));
}

std::string place_bounds(const Graph& graph, const Node& node, FusionRole& role) {
  const size_t rank = dims_of(graph, node.inputs[0]).size();
  place_first(graph, node, role);
  for (size_t index = 1; index < node.inputs.size(); ++index) {
    if (node.inputs[index].is_none()) continue;
    if (element_count(dims_of(graph, node.inputs[index])) != 1) {
      return "takes bounds of one element only";
    }
    role.input_dims[index].assign(rank, 1);
  }
  return "";
}

// --- Expand --------------------------------------------------------------------------------------

Id lower_expand(const Lowering& lowering) { return lowering.input(0); }

// The shape decides only what the type rule knows already.
std::string place_expanded(const Graph& graph, const Node& node, FusionRole& role) {
  const size_t rank = dims_of(graph, node.outputs[0]).size();
  role.input_dims[0] = padded(dims_of(graph, node.inputs[0]), rank);
  return "";
}

// --- The table -----------------------------------------------------------------------------------

constexpr FusionKind kElementwise = FusionKind::Elementwise;
constexpr ops::TypeSet kSlopeTypes =
    ops::kFloatTypes | ops::kIndexTypes | ops::TypeSet{DataType::UInt32, DataType::UInt64};

constexpr FusionRow kSelectionRows[] = {
    {.op = "Clip",
     .kind = kElementwise,
     .types = ops::kNumericTypes,
     .lower = lower_clip_by_attributes,
     .place = place_first,
     .until = 10},
    {.op = "Clip",
     .kind = kElementwise,
     .types = ops::kNumericTypes,
     .lower = lower_clip,
     .place = place_bounds,
     .since = 11},
    {"Expand", kElementwise, ops::kAllTypes, lower_expand, place_expanded},
    {"Max", kElementwise, ops::kNumericTypes, lower_extreme<true>, place_broadcast},
    {"Mean", kElementwise, ops::kFloatTypes, lower_sum_of_inputs, place_broadcast},
    {"Min", kElementwise, ops::kNumericTypes, lower_extreme<false>, place_broadcast},
    {.op = "PRelu",
     .kind = kElementwise,
     .types = kSlopeTypes,
     .lower = lower_prelu,
     .place = place_channel_slopes,
     .until = 6},
    {.op = "PRelu",
     .kind = kElementwise,
     .types = kSlopeTypes,
     .lower = lower_prelu,
     .place = place_broadcast,
     .since = 7},
    {"Sum", kElementwise, ops::kFloatTypes, lower_sum_of_inputs, place_broadcast},
    {"Where", kElementwise, ops::kBoolType, lower_where, place_broadcast},
};

}  // namespace

std::span<const FusionRow> selection_rows() { return kSelectionRows; }

}  // namespace tessera::codegen
