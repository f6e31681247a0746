#include "base/accuracy.h"

namespace tessera::onednn {

using dnnl::algorithm;

namespace {

// Measured with version 3.2 on float32 in float64: on AVX-512, AVX2 and SSE4.1, for 1.6 million
// numbers of all magnitudes.
struct Row {
  algorithm function;
  const char* reason;
};
constexpr Row kInexact[] = {
    {algorithm::eltwise_elu, "is exp(x) - 1 below 0: near 0 it has no correct digits"},
    {algorithm::eltwise_gelu_erf,
     "is x (1 + erf(x / sqrt(2))) / 2: it has no correct digits below -5, and is NaN for infinity"},
    {algorithm::eltwise_gelu_tanh, "is x (1 + tanh(u)) / 2: it has no correct digits below -5"},
    {algorithm::eltwise_log, "has no correct digits near 1"},
    {algorithm::eltwise_mish, "loses digits below -0.5, and has none below -10"},
    {algorithm::eltwise_soft_relu, "is off by 8e-6 below -0.4, where it may be far smaller"},
};

// Sums run through all elements one after the other, in float32. This many are within the error
// bound of sums, even if all elements are equal and each addition rounds in the same direction: the
// error of 32 is 0.95 of the bound, that of 49 is 1.3 times the bound.
constexpr int64_t kLongestSum = 32;
// The error bound of sums of magnitudes and squares is 5 units in the last place, which 17 equal
// elements exceed.
constexpr int64_t kLongestSumOfMagnitudes = 16;
// The longest row of a normalization except LayerNormalization, which has partial sums.
constexpr int64_t kLongestRow = 4096;
// Large weights make a recurrence without gates chaotic: each step multiplies the rounding errors
// of all steps before it. The derivative of Sigmoid is at most 1/4, which damps them.
constexpr int64_t kMostSteps = 32;

}  // namespace

std::string explain_inexact(const Eltwise& function) {
  for (const Row& row : kInexact) {
    if (row.function == function.algorithm) {
      return std::string("is not exact enough: the function of oneDNN ") + row.reason;
    }
  }
  // The exponential multiplies the rounding error of the product.
  if (function.algorithm == algorithm::eltwise_swish && function.alpha != 1) {
    return "is not exact enough: oneDNN rounds alpha x before its exponential";
  }
  return "";
}

std::string explain_inexact_tail(const Eltwise& function) {
  if (function.algorithm == algorithm::eltwise_logistic) {
    return "is not exact enough: oneDNN's Sigmoid is off by more than 4 units in the last place "
           "below -79";
  }
  if (function.algorithm == algorithm::eltwise_swish) {
    return "is not exact enough: oneDNN's Swish is 0 below -86.6, where float32 has the result";
  }
  return "";
}

namespace {

std::string explain_sum(int64_t elements, int64_t most) {
  if (elements <= most) return "";
  return "is not exact enough: oneDNN adds up " + std::to_string(elements) +
         " elements in float32 one after the other, of which only " + std::to_string(most) +
         " are allowed";
}

}  // namespace

std::string explain_inexact_sum(int64_t elements) { return explain_sum(elements, kLongestSum); }

std::string explain_inexact_reduction(std::string_view op, int64_t elements) {
  if (op == "ReduceL2" || op == "ReduceProd") {
    return "is not exact enough: what oneDNN's " + std::string(op) +
           " computes on the way may leave the range of float32";
  }
  const bool is_of_magnitudes = op == "ReduceL1" || op == "ReduceSumSquare";
  return explain_sum(elements, is_of_magnitudes ? kLongestSumOfMagnitudes : kLongestSum);
}

std::string explain_inexact_statistics(std::string_view op, int64_t length) {
  if (op == "LayerNormalization" && length <= kLongestRow) return "";
  return "is not exact enough: oneDNN's " + std::string(op) +
         " has no correct digits if the mean is large (rows of " + std::to_string(length) +
         " elements)";
}

bool is_rough_recurrence(std::string_view op, int64_t steps, dnnl::algorithm function) {
  return op == "RNN" && steps > kMostSteps && function != algorithm::eltwise_logistic;
}

bool is_rough_convolution_sum() {
  const auto avx512 = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & avx512) != avx512;
}

}  // namespace tessera::onednn
