#include "accuracy.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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

// Sums run through many elements one after the other, in float32: up to this length, errors are
// still a few units in the last place.
constexpr int64_t kLongestSum = 1024;
// Those of windows, and of elements that are not neighbours, have no parts.
constexpr int64_t kLargestWindow = 256;

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

// Whether each sum is of neighbouring elements: those are added in parts.
bool adds_rows(const Node& node) {
  if (node.op() == "GlobalAveragePool") return true;
  if (node.input(1).is_present() && !node.input(1).is_constant()) return false;
  const std::vector<int64_t> dims = node.input(0).type().dims;
  const std::vector<bool> is_reduced = plugin::reduced_axes(node, dims.size());
  bool is_inside = true;  // the axes so far, from the last one
  for (size_t axis = dims.size(); axis-- > 0;) {
    if (dims[axis] == 1) continue;
    if (is_reduced[axis] && !is_inside) return false;
    is_inside = is_inside && is_reduced[axis];
  }
  return true;
}

std::string explain_length(int64_t length, int64_t most = kLongestSum) {
  if (length <= most) return "";
  return "is not exact enough: it adds up " + std::to_string(length) +
         " elements in float32, of which only " + std::to_string(most) + " are allowed";
}

bool is_power_of_two(float number) {
  int exponent = 0;
  return std::isnormal(number) && std::isnormal(1 / number) &&
         std::abs(std::frexp(number, &exponent)) == 0.5F;
}

std::string explain_division(const Node& node) {
  const plugin::Value divisor = node.input(1);
  if (divisor.is_constant() && divisor.constant() != nullptr) {
    const auto numbers = divisor.constant_as<float>();
    if (std::all_of(numbers.begin(), numbers.end(), is_power_of_two)) return "";
  }
  return "is not exact enough: it multiplies by reciprocals, which is rounded twice";
}

std::string explain_power(const Node& node) {
  const std::optional<double> exponent = plugin::constant_number(node.input(1));
  if (!exponent || std::abs(*exponent) != 0.5) return "";
  return "it computes the power of " + std::to_string(*exponent) +
         " by a square root, which is NaN for -infinity";
}

}  // namespace

std::string explain_inexact(const Node& node) {
  const std::string_view op = node.op();
  for (const Row& row : kInexact) {
    if (row.op == op) return "is not exact enough: its " + std::string(op) + " " + row.reason;
  }
  if (op == "Div") return explain_division(node);
  if (op == "Pow") return explain_power(node);
  if (op == "AveragePool") return explain_length(taps(node), kLargestWindow);
  if (op == "LayerNormalization" || op == "InstanceNormalization") {
    return explain_length(row_length(node));
  }
  const bool is_sum = op == "GlobalAveragePool" || op == "ReduceLogSumExp" || op == "ReduceMean" ||
                      op == "ReduceSum" || op == "ReduceSumSquare";
  if (is_sum) {
    return explain_length(elements_of_each(node), adds_rows(node) ? kLongestSum : kLargestWindow);
  }
  if (op == "ReduceProd") {
    return "is not exact enough: its products on the way may leave the range of float32";
  }
  return "";
}

}  // namespace tessera::openvino
