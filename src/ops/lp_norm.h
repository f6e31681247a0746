// The Lp norm of a set of elements: the p-th root of the sum of |x|^p. Shared by LpNormalization,
// LpPool and GlobalLpPool.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "ops/compensated_sum.h"
#include "ops/op.h"

namespace tessera::ops {

inline double lp_power(double magnitude, int64_t p) {
  if (p == 1) return magnitude;
  if (p == 2) return magnitude * magnitude;
  return std::pow(magnitude, static_cast<double>(p));
}

inline double lp_root(double sum, int64_t p) {
  if (p == 1) return sum;
  if (p == 2) return std::sqrt(sum);
  return std::pow(sum, 1.0 / static_cast<double>(p));
}

// visit_elements(visit) calls visit(x) for each element; it is called up to three times. If the
// powers leave the range of float64, they are scaled by the largest element.
template <class VisitElements>
double lp_norm(const VisitElements& visit_elements, int64_t p) {
  CompensatedSum sum;
  visit_elements([&](double x) { sum.add(lp_power(std::fabs(x), p)); });
  if (std::isnormal(sum.value()) || std::isnan(sum.value())) return lp_root(sum.value(), p);
  double largest = 0;
  visit_elements([&](double x) { largest = std::max(largest, std::fabs(x)); });
  if (largest == 0 || std::isinf(largest)) return largest;
  CompensatedSum scaled;
  visit_elements([&](double x) { scaled.add(lp_power(std::fabs(x) / largest, p)); });
  return largest * lp_root(scaled.value(), p);
}

// fail()s unless the attribute `p` of the node is at least 1.
inline void check_lp_order(const InferContext& context) {
  const int64_t p = context.node().attributes.get_int("p");
  if (p < 1) {
    context.fail("attribute 'p': expected an order of at least 1, found " + std::to_string(p));
  }
}

}  // namespace tessera::ops
