#include "ops/ml/scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string_view>

#include "ops/ml/feature_rows.h"

namespace tessera::ops {
namespace {

constexpr std::string_view kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO",
                                            "PROBIT"};

// Of either sign without overflow.
double logistic_of(double score) {
  const double larger = 1 / (1 + std::exp(-std::abs(score)));
  return score < 0 ? 1 - larger : larger;
}

// The inverse of the normal distribution, sqrt(2) * erfinv(2 p - 1), with the closed form that ONNX
// Runtime and onnx.reference use for erfinv: S. Winitzki, "A handy approximation for the error
// function and its inverse" (2008), with a = 0.147. Its error is 0.002 of the result.
double probit_of(double probability) {
  constexpr double kA = 0.147;
  const double x = 2 * probability - 1;
  const double logarithm = std::log((1 - x) * (1 + x));
  const double half = 2 / (std::numbers::pi * kA) + logarithm / 2;
  const double root = std::sqrt(std::sqrt(half * half - logarithm / kA) - half);
  return std::numbers::sqrt2 * (x < 0 ? -root : root);
}

void softmax_of(std::span<double> scores) {
  const double largest = *std::ranges::max_element(scores);
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - largest);
  for (double& score : scores) score /= sum;
}

// Scores of 0 stay 0, as those of classes that no model voted for.
void softmax_zero_of(std::span<double> scores) {
  constexpr double kNearZero = 0.0000001;
  const double largest = *std::ranges::max_element(scores);
  double sum = 0;
  for (double& score : scores) {
    if (std::abs(score) > kNearZero) {
      sum += score = std::exp(score - largest);
    } else {
      score *= std::exp(-largest);
    }
  }
  for (double& score : scores) score /= sum;
}

}  // namespace

void check_post_transform(const InferContext& context) {
  check_word(context, "post_transform", kTransforms);
}

PostTransform post_transform_of(const Node& node) {
  const std::string_view word = node.attributes.get_string("post_transform");
  return static_cast<PostTransform>(std::ranges::find(kTransforms, word) - kTransforms);
}

void transform_scores(PostTransform transform, std::span<double> scores) {
  if (scores.empty()) return;
  switch (transform) {
    case PostTransform::None:
      return;
    case PostTransform::Softmax:
      return softmax_of(scores);
    case PostTransform::Logistic:
      for (double& score : scores) score = logistic_of(score);
      return;
    case PostTransform::SoftmaxZero:
      return softmax_zero_of(scores);
    case PostTransform::Probit:
      for (double& score : scores) score = probit_of(score);
      return;
  }
}

std::array<double, 2> binary_scores(PostTransform transform, OtherScore other, double score) {
  if (transform == PostTransform::Logistic) return {logistic_of(-score), logistic_of(score)};
  std::array<double, 2> scores = {other == OtherScore::Complement ? 1 - score : -score, score};
  if (transform == PostTransform::Probit) transform_scores(transform, scores);
  return scores;
}

}  // namespace tessera::ops
