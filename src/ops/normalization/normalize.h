// Shared by the normalisations: mean and variance of a set of elements, and common checks.
#pragma once

#include <cmath>

#include "base/threads/function_ref.h"
#include "ops/compensated_sum.h"
#include "ops/convert_element.h"
#include "ops/op.h"

namespace tessera::ops {

struct Moments {
  double mean = 0;
  double variance = 0;  // population variance: divided by the count

  double inverse_deviation(double epsilon) const { return 1.0 / std::sqrt(variance + epsilon); }
};

// Calls visit_runs(visit) twice; each call must pass every element once. Two passes avoid
// cancellation if the mean is far from zero. NaN if there are no elements.
template <class VisitRuns>
Moments moments_of(const VisitRuns& visit_runs, int64_t count) {
  Moments moments;
  CompensatedSum sum;
  visit_runs([&](double value) { sum.add(value); });
  moments.mean = sum.value() / static_cast<double>(count);
  CompensatedSum squares;
  visit_runs([&](double value) { squares.add((value - moments.mean) * (value - moments.mean)); });
  moments.variance = squares.value() / static_cast<double>(count);
  return moments;
}

template <class T>
Moments moments_of(std::span<const T> elements) {
  const auto visit_all = [&](const auto& visit) {
    for (const T element : elements) visit(to_double(element));
  };
  return moments_of(visit_all, static_cast<int64_t>(elements.size()));
}

// The kernel of ops that split input 0 into `rows` equal rows, normalise each by its own moments,
// and scale and shift it by inputs 1 and 2. Each run of `run_length` elements of a row uses the
// scale and shift at index parameter(row, run). The input must have elements.
void normalize_rows(const KernelCall& call, int64_t rows, int64_t run_length,
                    FunctionRef<int64_t(int64_t row, int64_t run)> parameter);

// Per element: mean, deviation, scale and shift.
int64_t normalization_flops(const Node& node, std::span<const Type> inputs,
                            std::span<const Type> outputs);

}  // namespace tessera::ops
