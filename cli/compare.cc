#include "cli/compare.h"

#include <cmath>
#include <limits>

namespace tessera::cli {
namespace {

std::string type_text(const Tensor& tensor) {
  return std::string(name(tensor.type())) + " " + dims_text(tensor.dims());
}

// The difference by which an element exceeds its tolerance; 0 or less if it matches.
WideNumber excess_of(WideNumber actual, WideNumber expected, WideNumber allowed) {
  if (std::isnan(actual) && std::isnan(expected)) return 0;
  if (actual == expected) return 0;  // equal infinities have no difference
  if (!std::isfinite(actual) || !std::isfinite(expected)) {
    return std::numeric_limits<WideNumber>::infinity();
  }
  return std::abs(actual - expected) - allowed;
}

}  // namespace

Comparison compare(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance) {
  Comparison result;
  result.elements = expected.elements();
  if (actual.type() != expected.type() || actual.dims() != expected.dims()) {
    result.difference_in_type = "expected " + type_text(expected) + ", found " + type_text(actual);
    return result;
  }
  WideNumber worst_excess = 0;
  for (int64_t index = 0; index < expected.elements(); ++index) {
    const WideNumber left = element_at(actual, index);
    const WideNumber right = element_at(expected, index);
    const WideNumber allowed = tolerance.absolute + tolerance.relative * std::abs(right);
    const WideNumber excess = excess_of(left, right, allowed);
    if (!(excess > 0)) continue;
    ++result.elements_off;
    if (excess <= worst_excess) continue;
    worst_excess = excess;
    result.worst_indices = indices_of(expected.dims(), index);
    result.actual = left;
    result.expected = right;
    result.difference = std::abs(left - right);
    result.allowed = allowed;
  }
  return result;
}

std::string explain(const Comparison& comparison, DataType type) {
  if (comparison.is_match()) return "";
  if (!comparison.difference_in_type.empty()) return comparison.difference_in_type;
  const int digits = distinguishing_digits(type);
  std::string text = "worst element " + indices_text(comparison.worst_indices) + ": expected " +
                     number_text(comparison.expected, digits) + ", found " +
                     number_text(comparison.actual, digits);
  if (std::isfinite(comparison.difference)) {
    text += "\noff by " + number_text(comparison.difference, 6) + ", allowed " +
            number_text(comparison.allowed, 6);
  }
  return text + "\n" + std::to_string(comparison.elements_off) + " of " +
         std::to_string(comparison.elements) + " elements are off";
}

}  // namespace tessera::cli
