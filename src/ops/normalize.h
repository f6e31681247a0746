// What the normalisations share: mean and variance of a set of elements, and what they check.
#pragma once

#include <cmath>

#include "base/function_ref.h"
#include "ops/convert_element.h"
#include "ops/op.h"

namespace tessera::ops {

struct Moments {
  double mean = 0;
  double variance = 0;  // of the whole population: divided by the count

  double inverse_deviation(double epsilon) const { return 1.0 / std::sqrt(variance + epsilon); }
};

// Calls visit_runs(visit) twice, which passes every element once; two passes, so that a mean far
// from zero costs no digits. NaN for no elements.
template <class VisitRuns>
Moments moments_of(const VisitRuns& visit_runs, int64_t count) {
  Moments moments;
  double sum = 0;
  visit_runs([&](double value) { sum += value; });
  moments.mean = sum / static_cast<double>(count);
  double squares = 0;
  visit_runs([&](double value) { squares += (value - moments.mean) * (value - moments.mean); });
  moments.variance = squares / static_cast<double>(count);
  return moments;
}

template <class T>
Moments moments_of(std::span<const T> elements) {
  const auto visit_all = [&](const auto& visit) {
    for (const T element : elements) visit(to_double(element));
  };
  return moments_of(visit_all, static_cast<int64_t>(elements.size()));
}

// The kernel of the ops that cut input 0 into `rows` equal rows, normalise each by its own moments,
// and scale and shift it by inputs 1 and 2. The elements of a row in runs of `run_length` share the
// scale and shift number parameter(row, run). The input must have elements.
void normalize_rows(const KernelCall& call, int64_t rows, int64_t run_length,
                    FunctionRef<int64_t(int64_t row, int64_t run)> parameter);

// Mean, deviation, scale and shift of each element.
int64_t normalization_flops(const Node& node, std::span<const Type> inputs,
                            std::span<const Type> outputs);

}  // namespace tessera::ops
