#include "ops/ml/ml_test.h"

namespace tessera::ops {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

Attributes linear_attributes(std::vector<float> coefficients, std::vector<float> intercepts,
                             const char* transform = "NONE") {
  Attributes attributes = attributes_of({{"post_transform", transform}});
  attributes.set("coefficients", std::move(coefficients));
  if (!intercepts.empty()) attributes.set("intercepts", std::move(intercepts));
  return attributes;
}

Attributes labelled(Attributes attributes, std::vector<int64_t> labels) {
  attributes.set("classlabels_ints", std::move(labels));
  return attributes;
}

TEST(LinearClassifier, ChoosesTheLargestSum) {
  const auto outputs =
      run_ml("LinearClassifier", 1,
             labelled(linear_attributes({1, 0, 0, 1, -1, -1}, {0, 1, 0.5F}), {4, 5, 6}),
             {floats({2, 2}, {3, 1, -2, -2})}, 2);
  EXPECT_THAT(integers(outputs[0]), ElementsAre(4, 6));
  EXPECT_THAT(values(outputs[1]), ElementsAre(3, 2, -3.5F, -2, -1, 4.5F));
}

TEST(LinearClassifier, TakesTheFirstOfEqualSums) {
  const auto outputs =
      run_ml("LinearClassifier", 1, labelled(linear_attributes({1, 1}, {0, 0}), {7, 9}),
             {floats({1, 1}, {5})}, 2);
  EXPECT_THAT(integers(outputs[0]), ElementsAre(7));
}

// As in ONNX Runtime: the standard does not say what the scores are.
TEST(LinearClassifier, GivesTwoScoresForOneSum) {
  const Tensor rows = floats({2, 1}, {2, -1});
  const auto plain =
      run_ml("LinearClassifier", 1, labelled(linear_attributes({1}, {0}), {7, 9}), {rows}, 2);
  EXPECT_THAT(integers(plain[0]), ElementsAre(9, 7));
  EXPECT_THAT(values(plain[1]), ElementsAre(-1, 2, 2, -1));
  const auto logistic = run_ml(
      "LinearClassifier", 1, labelled(linear_attributes({1}, {0}, "LOGISTIC"), {7, 9}), {rows}, 2);
  EXPECT_THAT(values(logistic[1]), ElementsAre(FloatEq(0.11920292F), FloatEq(0.88079708F),
                                               FloatEq(0.73105858F), FloatEq(0.26894142F)));
}

TEST(LinearClassifier, NamesClasses) {
  Attributes attributes = linear_attributes({1, -1}, {0, 0});
  attributes.set("classlabels_strings", std::vector<std::string>{"up", "down"});
  const auto outputs =
      run_text({"LinearClassifier", 1, kMlDomain}, attributes, {ints({2, 1}, {3, -3})}, 2);
  EXPECT_THAT(texts(outputs[0]), ElementsAre("up", "down"));
  EXPECT_THAT(values(outputs[1]), ElementsAre(3, -3, -3, 3));
}

TEST(LinearClassifier, RefusesWhatDoesNotFit) {
  EXPECT_THAT(ml_error("LinearClassifier", 1, linear_attributes({1}, {0}), rows_of(1)),
              HasSubstr("found none"));
  EXPECT_THAT(ml_error("LinearClassifier", 1, labelled(linear_attributes({1, 2}, {0}), {1, 2, 3}),
                       rows_of(2)),
              HasSubstr("one for each of 3 classes, found 1"));
  EXPECT_THAT(ml_error("LinearClassifier", 1, labelled(linear_attributes({1, 2, 3}, {}), {1, 2}),
                       rows_of(2)),
              HasSubstr("as many for each of 2 sums, found 3"));
  EXPECT_THAT(
      ml_error("LinearClassifier", 1, labelled(linear_attributes({1, 2}, {}), {1, 2}), rows_of(2)),
      HasSubstr("rows of 1 features"));
  EXPECT_THAT(ml_error("LinearClassifier", 1,
                       labelled(linear_attributes({1, 2}, {}, "RELU"), {1, 2}), rows_of(1)),
              HasSubstr("SOFTMAX_ZERO or PROBIT, found 'RELU'"));
}

TEST(LinearRegressor, SumsProducts) {
  Attributes attributes = linear_attributes({1, 2, 3, 4}, {0.5F, -0.5F});
  attributes.set("targets", int64_t{2});
  EXPECT_THAT(values(run_ml("LinearRegressor", 1, attributes, {doubles({1, 2}, {10, 1})})[0]),
              ElementsAre(12.5F, 33.5F));
}

TEST(LinearRegressor, ComputesManyRows) {
  std::vector<float> rows(1001);
  for (size_t row = 0; row < rows.size(); ++row) rows[row] = static_cast<float>(row);
  const Tensor sums =
      run_ml("LinearRegressor", 1, linear_attributes({2}, {1}), {floats({1001, 1}, rows)})[0];
  for (float& row : rows) row = 2 * row + 1;
  EXPECT_THAT(values(sums), Pointwise(testing::Eq(), rows));
}

// Quantiles of the normal distribution; the closed form is off by 0.002 of the result at most.
TEST(LinearRegressor, TransformsScores) {
  const Tensor rows = floats({2, 1}, {0.975F, 0.5F});
  EXPECT_THAT(values(run_ml("LinearRegressor", 1, linear_attributes({1}, {}, "PROBIT"), {rows})[0]),
              ElementsAre(FloatNear(1.959964F, 0.004F), FloatNear(0, 1e-6F)));
  EXPECT_THAT(
      values(run_ml("LinearRegressor", 1, linear_attributes({1}, {}, "LOGISTIC"), {rows})[0]),
      ElementsAre(FloatEq(0.72611499F), FloatEq(0.62245933F)));
  Attributes two = linear_attributes({0, 1}, {}, "SOFTMAX_ZERO");
  two.set("targets", int64_t{2});
  EXPECT_THAT(values(run_ml("LinearRegressor", 1, two, {rows})[0]), ElementsAre(0, 1, 0, 1));
  two.set("post_transform", std::string("SOFTMAX"));
  EXPECT_THAT(values(run_ml("LinearRegressor", 1, two, {floats({1, 1}, {1})})[0]),
              ElementsAre(FloatEq(0.26894142F), FloatEq(0.73105858F)));
}

TEST(LinearRegressor, RefusesWhatDoesNotFit) {
  Attributes attributes = linear_attributes({1, 2}, {1});
  attributes.set("targets", int64_t{2});
  EXPECT_THAT(ml_error("LinearRegressor", 1, attributes, rows_of(1)),
              HasSubstr("one for each of 2 targets, found 1"));
  attributes.set("targets", int64_t{0});
  EXPECT_THAT(ml_error("LinearRegressor", 1, attributes, rows_of(1)),
              HasSubstr("at least 1, found 0"));
}

}  // namespace
}  // namespace tessera::ops
