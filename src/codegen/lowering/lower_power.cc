// Pow, with forms of their own for the exponents that models write most.
#include <limits>
#include <string>

#include "codegen/lowering/lower_op.h"
#include "codegen/math/math_functions.h"

namespace tessera::codegen {
namespace {

using Id = InstructionId;
using Builder = ExpressionBuilder;

constexpr int64_t kMaxIntegerExponent = 64;

bool is_integer_power(const Graph& graph, const Node& node) {
  return is_integer(graph[node.inputs[0]].type.element) &&
         is_integer(graph[node.inputs[1]].type.element);
}

// A square root for the powers of 0.5 and -0.5: unlike sqrt(x), pow(-inf, 0.5) is infinity, and
// pow(-0, 0.5) is a positive zero.
Id root(Builder& builder, Id x) {
  const DataType type = builder.type(x);
  const double infinity = std::numeric_limits<double>::infinity();
  const Id positive_zero = builder.add(x, builder.number(type, 0));
  return builder.select(builder.equal(x, builder.number(type, -infinity)),
                        builder.number(type, infinity), builder.square_root(positive_zero));
}

// Without a function; -1 if there is no such form.
Id simple_power(Builder& builder, Id x, double exponent) {
  const Id one = builder.number(builder.type(x), 1);
  if (exponent == 1) return x;
  if (exponent == 2) return builder.multiply(x, x);
  if (exponent == 3) return builder.multiply(builder.multiply(x, x), x);
  if (exponent == -1) return builder.divide(one, x);
  if (exponent == -2) {
    const Id reciprocal = builder.divide(one, x);
    return builder.multiply(reciprocal, reciprocal);
  }
  if (exponent == 0.5) return root(builder, x);
  if (exponent == -0.5) return builder.divide(one, root(builder, x));
  return -1;
}

bool has_simple_power(double exponent) {
  for (const double simple : {1.0, 2.0, 3.0, -1.0, -2.0, 0.5, -0.5}) {
    if (exponent == simple) return true;
  }
  return false;
}

std::string keep_exponent(const Graph& graph, const Node& node, FusionRole& role) {
  const DataType base = graph[node.inputs[0]].type.element;
  if (is_integer_power(graph, node)) {
    const std::optional<int64_t> exponent = constant_integer(graph, node.inputs[1]);
    if (!exponent || *exponent < 1 || *exponent > kMaxIntegerExponent) {
      return "raises integers to one constant power from 1 to 64 only";
    }
    role.input_dims[1].clear();
    return "";
  }
  // The reference truncates, so the smallest error of pow could give another integer.
  if (is_integer(base)) return "raises integers to integer powers only";
  const std::optional<double> exponent = constant_number(graph, node.inputs[1]);
  if (exponent && has_simple_power(*exponent)) role.input_dims[1].clear();
  return "";
}

std::string place_power(const Graph& graph, const Node& node, FusionRole& role) {
  place_broadcast(graph, node, role);
  return keep_exponent(graph, node, role);
}

std::string place_aligned_power(const Graph& graph, const Node& node, FusionRole& role) {
  std::string reason = place_aligned(graph, node, role);
  return reason.empty() ? keep_exponent(graph, node, role) : reason;
}

// Exact modulo the size of the type, as multiplication is.
Id integer_power(Builder& builder, Id base, int64_t exponent) {
  Id result = -1;
  Id square = base;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 != 0) result = result < 0 ? square : builder.multiply(result, square);
    if (exponent > 1) square = builder.multiply(square, square);
  }
  return result;
}

// Whether float32 holds all elements of the type.
bool is_exact_in_float32(DataType type) {
  return is_half(type) || type == DataType::Float32 ||
         (is_integer(type) && element_bytes(type) <= 2);
}

Id lower_power(const Lowering& lowering) {
  Builder& builder = lowering.builder;
  const Id base = lowering.number(0);
  if (is_integer_power(lowering.graph, lowering.node)) {
    const auto count = constant_integer(lowering.graph, lowering.node.inputs[1]);
    return integer_power(builder, base, count.value_or(1));
  }
  const auto exponent = constant_number(lowering.graph, lowering.node.inputs[1]);
  const Id simple = exponent ? simple_power(builder, base, *exponent) : -1;
  if (simple >= 0) return simple;
  const bool is_narrow =
      is_exact_in_float32(lowering.input_type(0)) && is_exact_in_float32(lowering.input_type(1));
  const DataType type = is_narrow ? DataType::Float32 : DataType::Float64;
  return pow(builder, builder.convert(base, type), builder.convert(lowering.number(1), type));
}

constexpr ops::TypeSet kTypes = ops::kFloatTypes | ops::kIndexTypes;

constexpr FusionRow kPowerRows[] = {
    {.op = "Pow",
     .kind = FusionKind::Elementwise,
     .types = kTypes,
     .lower = lower_power,
     .place = place_aligned_power,
     .float32 = {3},
     .float64 = {3},
     .until = 6},
    {.op = "Pow",
     .kind = FusionKind::Elementwise,
     .types = kTypes,
     .lower = lower_power,
     .place = place_power,
     .float32 = {3},
     .float64 = {3},
     .since = 7},
};

}  // namespace

std::span<const FusionRow> power_rows() { return kPowerRows; }

}  // namespace tessera::codegen
