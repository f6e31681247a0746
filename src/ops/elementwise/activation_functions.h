// The activation functions that fused ops compute, too. activation.cc has the ops of these names.
#pragma once

#include <cmath>

// Every function propagates NaN: a comparison with NaN is false and must lead to the branch that
// returns x.
namespace tessera::ops::activation {

inline double relu(double x) { return x < 0 ? 0 : x; }
inline double softplus(double x) { return relu(x) + std::log1p(std::exp(-std::fabs(x))); }
inline double softsign(double x) { return x / (1 + std::fabs(x)); }
inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
// 1 + erf(z) would cancel for negative z; erfc(-z) is the same value without cancellation.
inline double gelu(double x) { return 0.5 * x * std::erfc(-x * M_SQRT1_2); }
// 0.5 * (1 + tanh(z)) = 1 / (1 + exp(-2 z)), which does not cancel.
inline double gelu_by_tanh(double x) {
  const double z = M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x);
  return x / (1 + std::exp(-2 * z));
}

}  // namespace tessera::ops::activation
