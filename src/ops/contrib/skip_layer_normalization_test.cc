#include "ops/contrib/contrib_test.h"

namespace tessera::ops {
namespace {

const Tensor kOnes = floats({2}, {1, 1});

TEST(SkipLayerNormalization, NormalisesTheSum) {
  const auto outputs =
      run_contrib("SkipLayerNormalization", {},
                  {floats({1, 2, 2}, {1, 2, 3, 4}), floats({1, 2, 2}, {0, 1, 0, 3}), floats({2, 1}),
                   floats({0, 5}), floats({1, 0})},
                  {true, true, true, true});
  // The sums are 2, 3 and 4, 7.
  EXPECT_THAT(values(outputs[3]), ElementsAre(2, 3, 4, 7));
  EXPECT_THAT(values(outputs[0]), Pointwise(FloatNear(1e-5F), std::vector<float>{-2, 6, -2, 6}));
  EXPECT_THAT(values(outputs[1]), Pointwise(FloatNear(1e-5F), std::vector<float>{2.5F, 5.5F}));
  EXPECT_THAT(values(outputs[2]), Pointwise(FloatNear(1e-5F), std::vector<float>{2, 1 / 1.5F}));
  EXPECT_THAT(outputs[1].dims(), ElementsAre(1, 2, 1));
}

TEST(SkipLayerNormalization, SimplifiedKeepsTheMean) {
  const auto outputs =
      run_contrib("SkipSimplifiedLayerNormalization", {},
                  {floats({1, 2}, {1, 2}), floats({1, 2}, {2, 2}), kOnes}, {true, false, true});
  // 3 and 4 over the root of 12.5.
  EXPECT_THAT(values(outputs[0]),
              Pointwise(FloatNear(1e-5F), std::vector<float>{0.848528F, 1.131371F}));
  EXPECT_THAT(values(outputs[2]), Pointwise(FloatNear(1e-5F), std::vector<float>{0.282843F}));
}

TEST(SkipLayerNormalization, TakesOneSkipForAllBatches) {
  const Tensor input = floats({2, 1, 2}, {1, 2, 3, 4});
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{1, 1, 2}, {1, 2}}) {
    const auto outputs =
        run_contrib("SkipLayerNormalization", {}, {input, floats(dims, {10, 20}), kOnes},
                    {true, false, false, true});
    EXPECT_THAT(values(outputs[3]), ElementsAre(11, 22, 13, 24));
  }
}

TEST(SkipLayerNormalization, RefusesWrongShapes) {
  const auto refusal_of = [](const Tensor& input, const Tensor& skip, const Tensor& scale) {
    return contrib_refusal("SkipLayerNormalization", {}, {input, skip, scale});
  };
  const Tensor matrix = floats({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(refusal_of(matrix, floats({1, 2}, {1, 2}), kOnes), HasSubstr("found [1x2]"));
  EXPECT_THAT(refusal_of(matrix, matrix, floats({1})), HasSubstr("expected shape [2]"));
  EXPECT_THAT(refusal_of(kOnes, kOnes, kOnes), HasSubstr("expected rank 2 or 3"));
  EXPECT_EQ(
      contrib_type("SkipLayerNormalization", {},
                   {typed(DataType::Float16, Shape{Dim::symbol("b"), 3, 2}),
                    typed(DataType::Float16, std::nullopt), typed(DataType::Float16, std::nullopt)},
                   1),
      "float32 bx3x1");
}

}  // namespace
}  // namespace tessera::ops
