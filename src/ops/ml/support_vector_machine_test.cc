#include <cmath>

#include "ops/ml/ml_test.h"

namespace tessera::ops {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::FloatNear;
using testing::HasSubstr;

Attributes machine(std::vector<float> vectors, std::vector<float> coefficients,
                   std::vector<float> rho, const char* kernel = "LINEAR",
                   std::vector<float> parameters = {1, 0, 0}) {
  Attributes attributes = attributes_of({{"kernel_type", kernel}});
  if (!vectors.empty()) attributes.set("support_vectors", std::move(vectors));
  attributes.set("coefficients", std::move(coefficients));
  attributes.set("rho", std::move(rho));
  attributes.set("kernel_params", std::move(parameters));
  return attributes;
}

Attributes regression(const char* kernel, std::vector<float> parameters) {
  Attributes attributes = machine({1, 0, 0, 2}, {1, -2}, {0.5F}, kernel, std::move(parameters));
  attributes.set("n_supports", int64_t{2});
  return attributes;
}

Attributes classes(Attributes attributes, std::vector<int64_t> labels,
                   std::vector<int64_t> vectors_per_class) {
  attributes.set("classlabels_ints", std::move(labels));
  if (!vectors_per_class.empty()) attributes.set("vectors_per_class", std::move(vectors_per_class));
  return attributes;
}

float machine_output(const Attributes& attributes) {
  return values(run_ml("SVMRegressor", 1, attributes, {floats({1, 2}, {3, 1})})[0])[0];
}

// Vectors (1, 0) and (0, 2) with weights 1 and -2, at (3, 1).
TEST(SVMRegressor, ComputesEachKernel) {
  EXPECT_FLOAT_EQ(machine_output(regression("LINEAR", {0, 0, 0})), 0.5F + 3 - 2 * 2);
  EXPECT_FLOAT_EQ(machine_output(regression("POLY", {2, 1, 3})), 0.5F + 343 - 2 * 125);
  EXPECT_FLOAT_EQ(machine_output(regression("RBF", {0.5F, 0, 0})),
                  static_cast<float>(0.5 + std::exp(-2.5) - 2 * std::exp(-5.0)));
  EXPECT_FLOAT_EQ(machine_output(regression("SIGMOID", {0.1F, 0, 0})),
                  static_cast<float>(0.5 + std::tanh(0.1F * 3.0) - 2 * std::tanh(0.1F * 2.0)));
}

TEST(SVMRegressor, MultipliesWithoutVectors) {
  EXPECT_FLOAT_EQ(machine_output(machine({}, {2, -1}, {1}, "RBF")), 6);
}

TEST(SVMRegressor, GivesSignsForOneClass) {
  Attributes attributes = regression("LINEAR", {0, 0, 0});
  attributes.set("one_class", int64_t{1});
  EXPECT_FLOAT_EQ(machine_output(attributes), -1);
}

TEST(SVMRegressor, RefusesWhatDoesNotFit) {
  Attributes attributes = regression("LINEAR", {0, 0, 0});
  attributes.set("n_supports", int64_t{3});
  EXPECT_THAT(ml_error("SVMRegressor", 1, attributes, rows_of(2)),
              HasSubstr("as many numbers for each of 3 vectors, found 4"));
  attributes.set("n_supports", int64_t{4});
  EXPECT_THAT(ml_error("SVMRegressor", 1, attributes, rows_of(1)),
              HasSubstr("expected 4 numbers, one for each support vector, found 2"));
  attributes.set("n_supports", int64_t{-1});
  EXPECT_THAT(ml_error("SVMRegressor", 1, attributes, rows_of(2)),
              HasSubstr("at least 0, found -1"));
  EXPECT_THAT(ml_error("SVMRegressor", 1, regression("LINEAR", {1}), rows_of(2)),
              HasSubstr("'kernel_params': expected 3 numbers, found 1"));
  EXPECT_THAT(ml_error("SVMRegressor", 1, regression("RBF", {0, 0, 0}), rows_of(3)),
              HasSubstr("rows of 2 features, as the support vectors have, found 3"));
}

TEST(SVMClassifier, VotesOnPairs) {
  const Attributes attributes =
      classes(machine({0.5F, -1, 2}, {1, -1, 0.5F, -0.5F, 0.75F, 0.25F}, {0.5F, 0, -1}), {5, 6, 8},
              {1, 1, 1});
  const auto outputs = run_ml("SVMClassifier", 1, attributes, {floats({1, 1}, {2})}, 2);
  // Kernels are (1, -2, 4); pairs (0, 1), (0, 2) and (1, 2).
  EXPECT_THAT(values(outputs[1]), ElementsAre(1 * 1 + -1 * -2 + 0.5F, 1 * -0.5F + 4 * 0.5F,
                                              -2 * 0.75F + 4 * 0.25F - 1));
  EXPECT_THAT(integers(outputs[0]), ElementsAre(5));
}

TEST(SVMClassifier, GivesBothScoresForAPair) {
  const Attributes attributes = classes(machine({0.5F, -0.25F}, {1, -1}, {0}), {7, 9}, {1, 1});
  const auto outputs = run_ml("SVMClassifier", 1, attributes, {floats({2, 1}, {2, -1})}, 2);
  EXPECT_THAT(integers(outputs[0]), ElementsAre(7, 9));
  EXPECT_THAT(values(outputs[1]), ElementsAre(-1.5F, 1.5F, 0.75F, -0.75F));
}

TEST(SVMClassifier, GivesProbabilities) {
  Attributes attributes = classes(machine({1, 2}, {1, -1}, {0}), {7, 9}, {1, 1});
  attributes.set("prob_a", std::vector<float>{-1});
  attributes.set("prob_b", std::vector<float>{0});
  // The decision value at x is -x: the first class has the probability 1 / (1 + exp(x)).
  const auto outputs = run_ml("SVMClassifier", 1, attributes, {floats({2, 1}, {0, 1})}, 2);
  const auto found = values(outputs[1]);
  EXPECT_THAT(found, ElementsAre(FloatNear(0.5F, 0.01F), FloatNear(0.5F, 0.01F),
                                 FloatNear(0.2689F, 0.01F), FloatNear(0.7311F, 0.01F)));
}

TEST(SVMClassifier, ChoosesByWeightsWithoutVectors) {
  const Attributes attributes = classes(machine({}, {1, 0, -1}, {0.5F}), {4, 5, 6}, {});
  const auto outputs = run_ml("SVMClassifier", 1, attributes, {floats({2, 1}, {2, -3})}, 2);
  EXPECT_THAT(integers(outputs[0]), ElementsAre(4, 6));
  EXPECT_THAT(values(outputs[1]), ElementsAre(2.5F, 0.5F, -1.5F, -2.5F, 0.5F, 3.5F));
}

TEST(SVMClassifier, NamesClasses) {
  Attributes attributes = machine({0.5F, -0.25F}, {1, -1}, {0});
  attributes.set("classlabels_strings", std::vector<std::string>{"no", "yes"});
  attributes.set("vectors_per_class", std::vector<int64_t>{1, 1});
  EXPECT_THAT(
      texts(run_text({"SVMClassifier", 1, kMlDomain}, attributes, {floats({2, 1}, {2, -1})}, 2)[0]),
      ElementsAre("no", "yes"));
}

TEST(SVMClassifier, RefusesWhatDoesNotFit) {
  const auto error = [](const Attributes& attributes) {
    return ml_error("SVMClassifier", 1, attributes, rows_of(1));
  };
  const Attributes whole = machine({1, 2}, {1, -1}, {0});
  EXPECT_THAT(error(classes(whole, {1}, {2})), HasSubstr("at least 2 classes"));
  EXPECT_THAT(error(classes(whole, {1, 2}, {2})),
              HasSubstr("2 numbers, one for each class, found 1"));
  EXPECT_THAT(error(classes(whole, {1, 2}, {kLargest, kLargest})),
              HasSubstr("that have 2 coefficients"));
  EXPECT_THAT(error(classes(whole, {1, 2}, {-1, 1})), HasSubstr("found -1"));
  EXPECT_THAT(error(classes(machine({1, 2}, {1, -1}, {}), {1, 2}, {1, 1})),
              HasSubstr("'rho': expected 1 numbers, one for each pair of classes, found 0"));
  EXPECT_THAT(error(classes(machine({}, {1, -1, 2}, {0}), {1, 2}, {})),
              HasSubstr("found 3 coefficients"));
  Attributes half = classes(whole, {1, 2}, {1, 1});
  half.set("prob_a", std::vector<float>{1});
  EXPECT_THAT(error(half), HasSubstr("'prob_b'"));
}

}  // namespace
}  // namespace tessera::ops
