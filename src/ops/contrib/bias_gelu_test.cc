#include "ops/contrib/contrib_test.h"

namespace tessera::ops {
namespace {

constexpr float kNearGelu = 1e-6F;
// Gelu(1), by the error function and by tanh; x * sigmoid(1.702 x) for 1.
constexpr float kGeluOfOne = 0.84134475F;
constexpr float kFastGeluOfOne = 0.84119199F;
constexpr float kQuickGeluOfOne = 0.84579576F;

TEST(BiasGelu, ComputesTheFunctions) {
  const Tensor input = floats({2, 1}, {0, 1});
  const auto run = [&](const std::string& op) { return values(run_contrib(op, {}, {input})[0]); };
  EXPECT_THAT(run("Gelu"), ElementsAre(0, FloatNear(kGeluOfOne, kNearGelu)));
  EXPECT_THAT(run("FastGelu"), ElementsAre(0, FloatNear(kFastGeluOfOne, kNearGelu)));
  EXPECT_THAT(run("QuickGelu"), ElementsAre(0, FloatNear(kQuickGeluOfOne, kNearGelu)));
  const auto half = run_contrib("QuickGelu", attributes_of({{"alpha", 0.0F}}), {input});
  EXPECT_THAT(values(half[0]), ElementsAre(0, 0.5F));
}

TEST(BiasGelu, AddsTheBiasOfTheColumn) {
  const Tensor input = floats({2, 2}, {0, 0.5F, 1, -1.5F});
  const Tensor bias = floats({2}, {0, 0.5F});
  const float minus_one = kGeluOfOne - 1;  // Gelu(-1) = Gelu(1) - 1
  EXPECT_THAT(
      values(run_contrib("BiasGelu", {}, {input, bias})[0]),
      Pointwise(FloatNear(kNearGelu), std::vector<float>{0, kGeluOfOne, kGeluOfOne, minus_one}));
  EXPECT_THAT(values(run_contrib("FastGelu", {}, {input, bias})[0]),
              Pointwise(FloatNear(kNearGelu),
                        std::vector<float>{0, kFastGeluOfOne, kFastGeluOfOne, kFastGeluOfOne - 1}));
}

TEST(BiasGelu, SplitsAndAdds) {
  const Tensor input = floats({1, 1, 4}, {2, 3, 0, 1});
  const Tensor bias = floats({4}, {1, 0, 1, 0});
  EXPECT_THAT(
      values(run_contrib("BiasSplitGelu", {}, {input, bias})[0]),
      Pointwise(FloatNear(3 * kNearGelu), std::vector<float>{3 * kGeluOfOne, 3 * kGeluOfOne}));
  const Tensor skip = floats({1, 1, 4}, {10, 20, 30, 40});
  EXPECT_THAT(values(run_contrib("BiasAdd", {}, {input, bias, skip})[0]),
              ElementsAre(13, 23, 31, 41));
}

TEST(BiasGelu, RefusesOtherShapes) {
  const Tensor input = floats({1, 1, 3}, {1, 2, 3});
  EXPECT_THAT(contrib_refusal("BiasGelu", {}, {input, floats({1, 2})}), HasSubstr("found [2]"));
  EXPECT_THAT(contrib_refusal("BiasGelu", {}, {floats({}, {1}), floats({1})}),
              HasSubstr("found a scalar"));
  EXPECT_THAT(contrib_refusal("BiasSplitGelu", {}, {input, floats({1, 2, 3})}),
              HasSubstr("even number of columns"));
  EXPECT_THAT(contrib_refusal("BiasAdd", {}, {input, floats({1, 2, 3}), floats({1, 3}, {1, 2, 3})}),
              HasSubstr("expected shape [1x1x3]"));
  EXPECT_THAT(contrib_refusal("BiasAdd", {}, {floats({1}), floats({1}), floats({1})}),
              HasSubstr("expected rank 3"));
}

TEST(BiasGelu, KeepsUnknownSizes) {
  const Dim n = Dim::symbol("n");
  const InferInput bias = typed(DataType::Float32, std::nullopt);
  EXPECT_EQ(contrib_type("BiasSplitGelu", {}, {typed(DataType::Float32, Shape{n, 2, 6}), bias}),
            "float32 nx2x3");
  EXPECT_EQ(contrib_type("BiasGelu", {}, {typed(DataType::Float32, std::nullopt), bias}),
            "float32 ?");
}

}  // namespace
}  // namespace tessera::ops
