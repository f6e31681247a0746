// The Reduce family and global pooling. Sums are computed in the type of the elements, of 16-bit
// floats in float32: a sum beyond the range of float32 is infinite, also if its mean would not be.
#include <algorithm>
#include <limits>
#include <string>

#include "codegen/lowering/lower_op.h"
#include "codegen/math/math_functions.h"

namespace tessera::codegen {
namespace {

using Id = InstructionId;
using Builder = ExpressionBuilder;

// --- Axes ----------------------------------------------------------------------------------------

// The axes as the model lists them; nullopt if they are known only in a run.
std::optional<std::vector<int64_t>> listed_axes(const Graph& graph, const Node& node) {
  if (const auto* axes = node.attributes.find_ints("axes")) return *axes;
  if (node.inputs.size() < 2 || node.inputs[1].is_none()) return std::vector<int64_t>{};
  const std::optional<Tensor> axes = small_constant(graph, node.inputs[1]);
  if (!axes || axes->type() != DataType::Int64) return std::nullopt;
  const auto elements = axes->as<int64_t>();
  return std::vector<int64_t>(elements.begin(), elements.end());
}

std::string place_reduction(const Graph& graph, const Node& node, FusionRole& role) {
  place_first(graph, node, role);
  const auto rank = static_cast<int64_t>(role.input_dims[0].size());
  const std::optional<std::vector<int64_t>> axes = listed_axes(graph, node);
  if (!axes) return "its axes are not known before running";
  const int64_t* keeps_all = node.attributes.find_int("noop_with_empty_axes");
  const bool is_all = axes->empty() && (keeps_all == nullptr || *keeps_all == 0);
  role.reduced_axes.assign(static_cast<size_t>(rank), is_all);
  for (const int64_t axis : *axes) {
    if (axis < -rank || axis >= rank) return "has an axis that its input lacks";
    role.reduced_axes[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
  }
  return "";
}

std::string place_global_pool(const Graph& graph, const Node& node, FusionRole& role) {
  place_first(graph, node, role);
  role.reduced_axes.assign(role.input_dims[0].size(), true);
  std::fill_n(role.reduced_axes.begin(), std::min<size_t>(2, role.reduced_axes.size()), false);
  return "";
}

// --- Integers ------------------------------------------------------------------------------------

bool is_unsigned_integer(DataType type) { return is_integer(type) && !is_signed_integer(type); }

// Sums and products have the same bits for signed and unsigned integers. The result has the type of
// `x`.
Id reduce_wrapping(const Lowering& lowering, Operation reduction, Id x) {
  Builder& builder = lowering.builder;
  const DataType type = builder.type(x);
  if (!is_unsigned_integer(type)) return lowering.reduce(reduction, x);
  const DataType wrapping = type == DataType::UInt64 ? DataType::Int64 : DataType::Int32;
  return builder.bit_cast(lowering.reduce(reduction, builder.bit_cast(x, wrapping)), type);
}

// --- Sums ----------------------------------------------------------------------------------------

Id lower_sum(const Lowering& lowering) {
  return reduce_wrapping(lowering, Operation::ReduceSum, lowering.number(0));
}

// Of floats in float64, where no product of a few floats underflows that the next ones undo.
Id lower_product(const Lowering& lowering) {
  const Id x = lowering.number(0);
  if (!is_floating(lowering.input_type(0))) {
    return reduce_wrapping(lowering, Operation::ReduceProduct, x);
  }
  return lowering.reduce(Operation::ReduceProduct, lowering.builder.convert(x, DataType::Float64));
}

Id lower_sum_square(const Lowering& lowering) {
  const Id x = lowering.number(0);
  return reduce_wrapping(lowering, Operation::ReduceSum, lowering.builder.multiply(x, x));
}

Id lower_norm_one(const Lowering& lowering) {
  const Id x = lowering.number(0);
  const bool is_signed = !is_unsigned_integer(lowering.input_type(0));
  return reduce_wrapping(lowering, Operation::ReduceSum,
                         is_signed ? lowering.builder.absolute(x) : x);
}

// In float64, where squares of float32 neither overflow nor underflow.
Id lower_norm_two(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const Id x = builder.convert(lowering.number(0), DataType::Float64);
  return builder.square_root(lowering.reduce(Operation::ReduceSum, builder.multiply(x, x)));
}

Id count_of(const Lowering& lowering, DataType type) {
  const int64_t count = lowering.reduced_elements();
  return is_integer(type) ? lowering.builder.constant_bits(type, static_cast<uint64_t>(count))
                          : lowering.builder.number(type, static_cast<double>(count));
}

Id lower_mean(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const DataType type = lowering.input_type(0);
  if (is_floating(type)) {
    const Id sum = lowering.reduce(Operation::ReduceSum, lowering.number(0));
    return builder.divide(sum, count_of(lowering, builder.type(sum)));
  }
  // The sum of integers has 64 bits, and the mean is truncated.
  const DataType wide = is_unsigned_integer(type) ? DataType::UInt64 : DataType::Int64;
  const Id sum =
      reduce_wrapping(lowering, Operation::ReduceSum, builder.convert(lowering.number(0), wide));
  return builder.divide(sum, count_of(lowering, wide));
}

Id lower_log_sum(const Lowering& lowering) {
  return log(lowering.builder, lowering.reduce(Operation::ReduceSum, lowering.number(0)));
}

// The maximum is subtracted unless it is infinite, which would give NaN.
Id lower_log_sum_exp(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const Id x = lowering.number(0);
  const DataType type = builder.type(x);
  const Id largest = lowering.reduce(Operation::ReduceMax, x);
  const Id infinity = builder.number(type, std::numeric_limits<double>::infinity());
  const Id is_finite = builder.less(builder.absolute(largest), infinity);
  const Id shift = builder.select(is_finite, largest, builder.number(type, 0));
  const Id power = exp(builder, builder.subtract(x, shift));
  return builder.add(log(builder, lowering.reduce(Operation::ReduceSum, power)), shift);
}

// --- Extremes ------------------------------------------------------------------------------------

// As int32 or int64 in the same order: the sign bit of unsigned integers is flipped.
Id ordered(Builder& builder, Id x) {
  const DataType type = builder.type(x);
  if (type == DataType::UInt32) {
    const Id sign = builder.constant_bits(type, uint64_t{1} << 31);
    return builder.bit_cast(builder.bit_xor(x, sign), DataType::Int32);
  }
  if (type == DataType::UInt64) {
    const Id sign = builder.constant_bits(type, uint64_t{1} << 63);
    return builder.bit_cast(builder.bit_xor(x, sign), DataType::Int64);
  }
  const bool is_narrow = type == DataType::Bool || (is_integer(type) && element_bytes(type) < 4);
  return is_narrow ? builder.convert(x, DataType::Int32) : x;
}

template <Operation kReduction>
Id lower_extreme(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const DataType type = lowering.input_type(0);
  const Id best = lowering.reduce(kReduction, ordered(builder, lowering.number(0)));
  if (type == DataType::UInt32 || type == DataType::UInt64) {
    const uint64_t sign = uint64_t{1} << (8 * element_bytes(type) - 1);
    return builder.bit_xor(builder.bit_cast(best, type), builder.constant_bits(type, sign));
  }
  return converted(builder, best, lowering.output_type());
}

// --- The table -----------------------------------------------------------------------------------

constexpr ops::TypeSet kWideTypes =
    ops::kFloatTypes |
    ops::TypeSet{DataType::Int32, DataType::Int64, DataType::UInt32, DataType::UInt64};
constexpr ops::TypeSet kOrderedTypes =
    kWideTypes | ops::TypeSet{DataType::Int8, DataType::UInt8, DataType::Bool};

constexpr FusionRow reduction_op(std::string_view name, ops::TypeSet types,
                                 Id (*lower)(const Lowering&), ErrorBound float32 = {},
                                 ErrorBound float64 = {}) {
  return {name, FusionKind::Reduction, types, lower, place_reduction, float32, float64};
}

constexpr FusionRow kReductionRows[] = {
    {.op = "GlobalAveragePool",
     .kind = FusionKind::Reduction,
     .types = ops::kFloatTypes,
     .lower = lower_mean,
     .place = place_global_pool,
     .float32 = {2}},
    {.op = "GlobalMaxPool",
     .kind = FusionKind::Reduction,
     .types = ops::kFloatTypes,
     .lower = lower_extreme<Operation::ReduceMax>,
     .place = place_global_pool},
    reduction_op("ReduceL1", kWideTypes, lower_norm_one),
    reduction_op("ReduceL2", ops::kFloatTypes, lower_norm_two),
    reduction_op("ReduceLogSum", ops::kFloatTypes, lower_log_sum, {2, 1}, {2, 1}),
    reduction_op("ReduceLogSumExp", ops::kFloatTypes, lower_log_sum_exp, {2, 128}, {2, 1024}),
    reduction_op("ReduceMax", kOrderedTypes, lower_extreme<Operation::ReduceMax>),
    reduction_op("ReduceMean", kWideTypes, lower_mean, {2}),
    reduction_op("ReduceMin", kOrderedTypes, lower_extreme<Operation::ReduceMin>),
    reduction_op("ReduceProd", kWideTypes, lower_product),
    reduction_op("ReduceSum", kWideTypes, lower_sum),
    reduction_op("ReduceSumSquare", kWideTypes, lower_sum_square, {2, 0x1p-110}),
};

}  // namespace

std::span<const FusionRow> reduction_rows() { return kReductionRows; }

}  // namespace tessera::codegen
