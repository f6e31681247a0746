#include <cmath>

#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

constexpr float kNearLoss = 1e-6F;
// The first example of the standard: N, C, d1 = 2, 3, 2.
const Tensor kInput = floats({2, 3, 2}, {1, 2, 2, 2, 3, 2, 0, 1, 2, 2, 1, 2});
const Tensor kTarget = ints({2, 2}, {2, 1, 0, 2});
const Tensor kWeight = floats({0.2F, 0.3F, 0.1F});

std::vector<float> likelihood(const Attributes& given, const std::vector<Tensor>& inputs) {
  return values(run_op("NegativeLogLikelihoodLoss", 22, given, inputs)[0]);
}

TEST(NegativeLogLikelihoodLoss, GivesTheExamplesOfTheStandard) {
  EXPECT_THAT(likelihood(attributes_of({{"reduction", "none"}}), {kInput, kTarget}),
              ElementsAre(-3, -2, 0, -2));
  EXPECT_THAT(likelihood(attributes_of({{"reduction", "sum"}}), {kInput, kTarget, kWeight}),
              ElementsAre(FloatNear(-1.1F, kNearLoss)));
  EXPECT_THAT(likelihood({}, {kInput, kTarget, kWeight}),
              ElementsAre(FloatNear(-1.1F / 0.7F, kNearLoss)));
  EXPECT_THAT(likelihood({}, {kInput, kTarget}), ElementsAre(-1.75F));
}

TEST(NegativeLogLikelihoodLoss, LeavesIgnoredSamplesOut) {
  const Tensor target = ints({2, 2}, {2, -7, -7, 2});
  const auto given = attributes_of({{"ignore_index", -7}});
  EXPECT_THAT(likelihood(given, {kInput, target}), ElementsAre(-2.5F));
  EXPECT_THAT(likelihood(attributes_of({{"ignore_index", -7}, {"reduction", "none"}}),
                         {kInput, target, kWeight}),
              Pointwise(FloatNear(kNearLoss), std::vector<float>{-0.3F, 0, 0, -0.2F}));
  const auto none = likelihood(given, {kInput, ints({2, 2}, {-7, -7, -7, -7})});
  EXPECT_TRUE(std::isnan(none[0]));
}

TEST(SoftmaxCrossEntropyLoss, TakesTheLogarithmOfSoftmax) {
  const Tensor scores = floats({2, 2}, {0, std::log(3.0F), 1000, 1000});
  const auto outputs = run_op("SoftmaxCrossEntropyLoss", 13, attributes_of({{"reduction", "none"}}),
                              {scores, ints({1, 0})}, 2);
  EXPECT_THAT(values(outputs[0]), Pointwise(FloatNear(kNearLoss),
                                            std::vector<float>{-std::log(0.75F), std::log(2.0F)}));
  EXPECT_THAT(values(outputs[1]), Pointwise(FloatNear(kNearLoss),
                                            std::vector<float>{std::log(0.25F), std::log(0.75F),
                                                               -std::log(2.0F), -std::log(2.0F)}));
  const auto mean =
      run_op("SoftmaxCrossEntropyLoss", 12, attributes_of({{"ignore_index", 9}}),
             {scores, Tensor::from<int32_t>(DataType::Int32, {2}, std::vector{1, 9})});
  EXPECT_THAT(values(mean[0]), ElementsAre(FloatNear(-std::log(0.75F), kNearLoss)));
}

TEST(SoftmaxCrossEntropyLoss, RefusesWrongClassesAndShapes) {
  const Tensor scores = floats({1, 2}, {0, 1});
  const auto refusal_of = [](const Attributes& given, const std::vector<Tensor>& inputs) {
    return refusal("SoftmaxCrossEntropyLoss", 13, given, inputs);
  };
  EXPECT_THAT(refusal_of({}, {scores, ints({2})}), HasSubstr("classes in [0, 2)"));
  EXPECT_THAT(refusal_of({}, {scores, ints({-1})}), HasSubstr("found -1"));
  EXPECT_THAT(refusal_of({}, {scores, ints({0, 0})}), HasSubstr("expected shape [1]"));
  EXPECT_THAT(refusal_of({}, {scores, ints({0}), floats({1})}), HasSubstr("expected shape [2]"));
  EXPECT_THAT(refusal_of({}, {floats({1}), ints({0})}), HasSubstr("samples and classes"));
  EXPECT_THAT(refusal_of(attributes_of({{"reduction", "max"}}), {scores, ints({0})}),
              HasSubstr("found 'max'"));
}

TEST(SoftmaxCrossEntropyLoss, KeepsUnknownSizes) {
  const Dim n = Dim::symbol("n");
  const auto given = attributes_of({{"reduction", "none"}});
  EXPECT_EQ(shape_text(infer_op(
                "SoftmaxCrossEntropyLoss", 13, given,
                {typed(DataType::Float32, Shape{n, 3, 4}), typed(DataType::Int64, std::nullopt)})),
            "float32 nx4");
  EXPECT_EQ(shape_text(infer_op(
                "SoftmaxCrossEntropyLoss", 13, {},
                {typed(DataType::Float32, std::nullopt), typed(DataType::Int64, std::nullopt)})),
            "float32 scalar");
}

}  // namespace
}  // namespace tessera::ops
