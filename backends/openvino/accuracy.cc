#include "accuracy.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/backend_ops.h"

namespace tessera::openvino {

using plugin::Node;

namespace {

// Measured with version 2026.4 on float32 in float64, for numbers of all magnitudes.
struct Row {
  std::string_view op;
  const char* reason;
};
constexpr Row kInexact[] = {
    {"Celu", "is exp(x) - 1 below 0: near 0 it has no correct digits"},
    {"Elu", "is exp(x) - 1 below 0: near 0 it has no correct digits"},
    {"Erf", "has no correct digits near 0"},
    {"Exp", "is infinite from 88.4 on, where float32 has the result"},
    {"Gelu", "has no correct digits below -5"},
    {"Mish", "loses digits below -0.5, and has none below -10"},
    {"Selu", "is exp(x) - 1 below 0: near 0 it has no correct digits"},
    {"Softplus", "is off by 8e-6 below -0.4, where it may be far smaller"},
};

// Sums are in float32. This many additions in a row are within the bound of sums, even if all
// elements are equal and each addition rounds in the same direction: the error of 32 is 0.95 of the
// bound, that of 36 exceeds it.
constexpr int64_t kMostAdditions = 32;
// The error bound of sums of squares is 5 units in the last place; 17 equal elements exceed it.
constexpr int64_t kMostAdditionsOfSquares = 16;
// Neighbours in the last two axes are added in as many parts as a vector has elements.
int64_t parts_of_sums() { return __builtin_cpu_supports("avx512f") ? 16 : 8; }
// Rows that are normalised: 1,024 equal elements reach the bound.
constexpr int64_t kLongestRow = 1000;

int64_t elements_of_each(const Node& node) {
  return node.input(0).type().elements() / std::max<int64_t>(1, node.output(0).type().elements());
}

int64_t taps(const Node& node) {
  int64_t taps = 1;
  for (const int64_t length : node.attributes().get_ints("kernel_shape")) taps *= length;
  return taps;
}

int64_t row_length(const Node& node) {
  const std::vector<int64_t> dims = node.input(0).type().dims;
  size_t axis = 2;
  if (node.op() == "LayerNormalization") {
    axis = plugin::normalized_axis(node.attributes().get_int("axis", -1), dims.size());
  }
  int64_t length = 1;
  for (size_t index = axis; index < dims.size(); ++index) length *= dims[index];
  return length;
}

std::vector<bool> summed_axes(const Node& node, size_t rank) {
  if (node.op() != "GlobalAveragePool") return plugin::reduced_axes(node, rank);
  std::vector<bool> is_spatial(rank, true);
  std::fill_n(is_spatial.begin(), std::min<size_t>(rank, 2), false);
  return is_spatial;
}

// The number of additions in a row that have the error of each sum. Neighbours in the last two axes
// are added in parts. Elements that do not fill all parts are added at the end, where each addition
// rounds three times as much as on average; sums of other axes are added one after the other.
int64_t additions_of(const Node& node) {
  const int64_t all = elements_of_each(node);
  const bool has_axes = node.op() == "GlobalAveragePool" || !node.input(1).is_present() ||
                        node.input(1).is_constant();
  const std::vector<int64_t> dims = node.input(0).type().dims;
  if (!has_axes || dims.size() < 2) return all;
  const std::vector<bool> is_summed = summed_axes(node, dims.size());
  int64_t in_parts = 1;
  bool is_inside = true;  // the axes so far, from the last one
  for (size_t axis = dims.size(); axis-- > 0;) {
    if (dims[axis] == 1) continue;
    if (is_summed[axis] && !is_inside) return all;
    is_inside = is_inside && is_summed[axis];
    if (is_summed[axis] && axis + 2 >= dims.size()) in_parts *= dims[axis];
  }
  const int64_t parts = parts_of_sums();
  if (in_parts < parts) return all;
  return in_parts / parts + 3 * (in_parts % parts) + all / in_parts - 1;
}

std::string explain_length(int64_t additions, int64_t most, int64_t elements) {
  if (additions <= most) return "";
  return "is not exact enough: it adds up " + std::to_string(elements) +
         " elements in float32, in too few parts";
}

bool is_power_of_two(float number) {
  int exponent = 0;
  return std::isnormal(number) && std::isnormal(1 / number) &&
         std::abs(std::frexp(number, &exponent)) == 0.5F;
}

bool are_powers_of_two(const plugin::Value& value) {
  if (!value.is_constant() || value.constant() == nullptr) return false;
  const auto numbers = value.constant_as<float>();
  return std::all_of(numbers.begin(), numbers.end(), is_power_of_two);
}

std::string explain_division(const Node& node) {
  if (are_powers_of_two(node.input(1))) return "";
  return "is not exact enough: it multiplies by reciprocals, which is rounded twice";
}

// Whether the node's error bound is in units of the sum of magnitudes, which is larger than a small
// result, so that an error of a few units of the result is within the bound.
bool sums_products(const Node& node) {
  const std::string_view op = node.op();
  return op == "Conv" || op == "ConvTranspose" || op == "Gemm" || op == "MatMul";
}

std::optional<size_t> constant_operand(const Node& node) {
  if (node.input_count() != 2) return std::nullopt;
  for (const size_t index : {size_t{1}, size_t{0}}) {
    if (node.input(index).is_constant()) return index;
  }
  return std::nullopt;
}

// The constant by which the node multiplies or divides its other input.
std::optional<size_t> constant_factor(const Node& node) {
  const std::optional<size_t> constant = constant_operand(node);
  const bool scales = node.op() == "Mul" || (node.op() == "Div" && constant == size_t{1});
  return scales ? constant : std::nullopt;
}

// Whether OpenVINO removes the op, except perhaps a change of sign.
bool keeps_magnitude(const Node& node) {
  return node.op() == "Neg" || node.op() == "Identity" || node.op() == "Dropout";
}

bool is_sum(const Node& node) {
  return node.op() == "Add" || node.op() == "Sub" || node.op() == "Sum";
}

size_t constants_of(const Node& node) {
  size_t count = 0;
  for (size_t index = 0; index < node.input_count(); ++index) {
    if (node.input(index).is_constant()) ++count;
  }
  return count;
}

enum class Factors : uint8_t { PowersOfTwo, All };

// The node that computes `value`, up to its sign and constant factors of this kind.
std::optional<Node> node_behind(const plugin::Graph& graph, const plugin::Value& value,
                                Factors factors) {
  for (int32_t id = value.producer(); id >= 0;) {
    const Node node = graph.node(id);
    const std::optional<size_t> constant = constant_factor(node);
    const bool is_scaled =
        constant && (factors == Factors::All || are_powers_of_two(node.input(*constant)));
    if (!is_scaled && !keeps_magnitude(node)) return node;
    id = node.input(is_scaled ? 1 - *constant : 0).producer();
  }
  return std::nullopt;
}

// The sum of values and constants that computes `value`, up to its sign and these factors.
std::optional<Node> sum_behind(const plugin::Graph& graph, const plugin::Value& value,
                               Factors factors) {
  const std::optional<Node> node = node_behind(graph, value, factors);
  return node && is_sum(*node) && constants_of(*node) > 0 ? node : std::nullopt;
}

// OpenVINO computes (x + a) + b as x + (a + b), whose error is in units of a + b.
std::string explain_sum_of_constants(const plugin::Graph& graph, const Node& node) {
  const size_t constants = constants_of(node);
  bool follows_sum = false;
  for (size_t index = 0; index < node.input_count(); ++index) {
    follows_sum = follows_sum || sum_behind(graph, node.input(index), Factors::All).has_value();
  }
  if (constants < 2 && !(constants == 1 && follows_sum)) return "";
  return "is not exact enough: it adds the constants of several sums first, and loses the digits "
         "of a small sum";
}

// The least magnitude that is not 0, and the largest one; 1 if the host does not tell the numbers.
std::pair<double, double> magnitudes_of(const plugin::Value& value) {
  if (value.constant() == nullptr) return {1, 1};
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (const float number : value.constant_as<float>()) {
    if (number == 0) continue;
    least = std::min(least, std::abs(double{number}));
    most = std::max(most, std::abs(double{number}));
  }
  return {least, most};
}

// The constant one of the two factors of a product of matrices or windows.
std::optional<size_t> weights_of(const Node& node) {
  for (const size_t index : {size_t{1}, size_t{0}}) {
    if (node.input(index).is_constant()) return index;
  }
  return std::nullopt;
}

struct Factor {
  plugin::Value value;
  bool divides = false;
};

// OpenVINO computes (x * a) * b as x * (a * b), which is infinite or zero if a * b is. The weights
// of a Conv or MatMul before or after are multiplied in the same way.
std::string explain_product_of_constants(const plugin::Graph& graph, const Node& node) {
  std::vector<Factor> factors;
  bool has_weights = false;
  for (std::optional<Node> next = node; next && (!has_weights || factors.size() < 2);) {
    const bool is_product = sums_products(*next);
    // OpenVINO does not multiply weights by weights.
    if (is_product && has_weights) break;
    const std::optional<size_t> constant = is_product ? weights_of(*next) : constant_factor(*next);
    if (!constant && !keeps_magnitude(*next)) break;
    if (constant) factors.push_back({next->input(*constant), next->op() == "Div"});
    has_weights = has_weights || is_product;
    const int32_t producer = next->input(constant ? 1 - *constant : 0).producer();
    next = producer < 0 ? std::nullopt : std::optional(graph.node(producer));
  }
  if (factors.size() < 2) return "";
  double least = 1;
  double most = 1;
  for (const auto& [value, divides] : factors) {
    const auto [low, high] = magnitudes_of(value);
    least *= divides ? 1 / high : low;
    most *= divides ? 1 / low : high;
  }
  using Limits = std::numeric_limits<float>;
  // A single weight that is nearly zero is not a factor of the whole result.
  const bool vanishes = !has_weights && least < Limits::min();
  if (!vanishes && most <= Limits::max()) return "";
  return "multiplies the constants of several products first, and their product is no normal "
         "float32";
}

// OpenVINO computes (x + a) * b as x * b + a * b, whose error is in units of a * b.
std::string explain_scaled_sum(const plugin::Graph& graph, const Node& node) {
  size_t scaled = 0;
  if (node.op() == "Mul") {
    const std::optional<size_t> constant = constant_operand(node);
    if (!constant || are_powers_of_two(node.input(*constant))) return "";
    scaled = 1 - *constant;
  }
  const std::optional<Node> sum = sum_behind(graph, node.input(scaled), Factors::PowersOfTwo);
  if (!sum) return "";
  if (const std::optional<size_t> constant = constant_operand(*sum)) {
    const int32_t summand = sum->input(1 - *constant).producer();
    if (summand >= 0 && sums_products(graph.node(summand))) return "";
  }
  return "is not exact enough: it multiplies each term of the sum before it, and loses the digits "
         "of a small sum";
}

std::string explain_power(const Node& node) {
  const std::optional<double> exponent = plugin::constant_number(node.input(1));
  if (!exponent || std::abs(*exponent) != 0.5) return "";
  return "it computes the power of " + std::to_string(*exponent) +
         " by a square root, which is NaN for -infinity";
}

}  // namespace

std::string explain_inexact(const plugin::Graph& graph, const Node& node) {
  const std::string_view op = node.op();
  for (const Row& row : kInexact) {
    if (row.op == op) return "is not exact enough: its " + std::string(op) + " " + row.reason;
  }
  if (op == "Mul" || op == "Div" || sums_products(node)) {
    const std::string reason = explain_product_of_constants(graph, node);
    if (!reason.empty()) return reason;
  }
  if (op == "Div") return explain_division(node);
  if (is_sum(node)) return explain_sum_of_constants(graph, node);
  if (op == "Pow") return explain_power(node);
  if (op == "Mul" || op == "BatchNormalization") return explain_scaled_sum(graph, node);
  if (op == "AveragePool") return explain_length(taps(node), kMostAdditions, taps(node));
  if (op == "LayerNormalization" || op == "InstanceNormalization") {
    return explain_length(row_length(node), kLongestRow, row_length(node));
  }
  const bool adds_up = op == "GlobalAveragePool" || op == "ReduceLogSumExp" || op == "ReduceMean" ||
                       op == "ReduceSum" || op == "ReduceSumSquare";
  if (adds_up) {
    const bool is_of_squares = op == "ReduceSumSquare";
    return explain_length(additions_of(node),
                          is_of_squares ? kMostAdditionsOfSquares : kMostAdditions,
                          elements_of_each(node));
  }
  if (op == "ReduceProd") {
    return "is not exact enough: its products on the way may leave the range of float32";
  }
  return "";
}

}  // namespace tessera::openvino
