#include "ops/ml/pairwise_coupling.h"

#include <algorithm>
#include <cmath>

namespace tessera::ops {
namespace {

// The matrix Q of the paper's equation 21, row by row: the sum of the squares of the other
// classes' probabilities against t on its diagonal, minus products of both elsewhere.
void fill_matrix(std::span<const double> pairs, size_t classes, std::span<double> matrix) {
  std::ranges::fill(matrix, 0);
  size_t pair = 0;
  for (size_t i = 0; i < classes; ++i) {
    for (size_t j = i + 1; j < classes; ++j, ++pair) {
      const double first = pairs[pair];
      const double second = 1 - first;
      matrix[i * classes + i] += second * second;
      matrix[j * classes + j] += first * first;
      matrix[i * classes + j] = matrix[j * classes + i] = -first * second;
    }
  }
}

// Sets `slopes` to Q p and returns p^T Q p.
double multiply_matrix(std::span<const double> matrix, std::span<const double> probabilities,
                       std::span<double> slopes) {
  const size_t classes = probabilities.size();
  double form = 0;
  for (size_t i = 0; i < classes; ++i) {
    slopes[i] = 0;
    for (size_t j = 0; j < classes; ++j) slopes[i] += matrix[i * classes + j] * probabilities[j];
    form += probabilities[i] * slopes[i];
  }
  return form;
}

}  // namespace

double pair_probability(double score, double a, double b) {
  constexpr double kMargin = 1e-7;
  const double exponent = a * score + b;
  const double power = std::exp(-std::abs(exponent));
  const double probability = exponent >= 0 ? power / (1 + power) : 1 / (1 + power);
  return std::clamp(probability, kMargin, 1 - kMargin);
}

size_t coupling_numbers(size_t classes) { return classes * classes + classes; }

void couple_pairs(std::span<const double> pairs, std::span<double> probabilities,
                  std::span<double> scratch) {
  constexpr int kMaxIterations = 100;
  const size_t classes = probabilities.size();
  const double tolerance = 0.005 / static_cast<double>(classes);
  const std::span<double> matrix = scratch.first(classes * classes);
  const std::span<double> slopes = scratch.subspan(classes * classes, classes);
  fill_matrix(pairs, classes, matrix);
  std::ranges::fill(probabilities, 1 / static_cast<double>(classes));
  for (int iteration = 0; iteration < kMaxIterations; ++iteration) {
    double form = multiply_matrix(matrix, probabilities, slopes);
    const bool is_done = std::ranges::all_of(
        slopes, [&](double slope) { return std::abs(slope - form) < tolerance; });
    if (is_done) return;
    for (size_t t = 0; t < classes; ++t) {
      const double diagonal = matrix[t * classes + t];
      const double step = (form - slopes[t]) / diagonal;
      const double scale = 1 / (1 + step);
      probabilities[t] += step;
      form = (form + step * (step * diagonal + 2 * slopes[t])) * scale * scale;
      for (size_t j = 0; j < classes; ++j) {
        slopes[j] = (slopes[j] + step * matrix[t * classes + j]) * scale;
        probabilities[j] *= scale;
      }
    }
  }
}

}  // namespace tessera::ops
