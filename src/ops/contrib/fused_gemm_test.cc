#include <cmath>

#include "ops/contrib/contrib_test.h"

namespace tessera::ops {
namespace {

const Tensor kLeft = floats({2, 2}, {1, 2, 3, 4});
const Tensor kRight = floats({2, 2}, {1, 0, 0, -1});

TEST(FusedGemm, ActivatesTheSum) {
  const Attributes given = attributes_of({{"activation", "Relu"}, {"alpha", 2.0F}, {"beta", 0.5F}});
  EXPECT_THAT(values(run_contrib("FusedGemm", given, {kLeft, kRight, floats({2, 6})})[0]),
              ElementsAre(3, 0, 7, 0));
}

TEST(FusedGemm, TransposesBothSides) {
  const auto run = [](int64_t left, int64_t right) {
    return values(run_contrib("FusedGemm", attributes_of({{"transA", left}, {"transB", right}}),
                              {floats({2, 2}, {1, 2, 3, 4}), floats({2, 2}, {1, 10, 0, 1})})[0]);
  };
  EXPECT_THAT(run(0, 0), ElementsAre(1, 12, 3, 34));
  EXPECT_THAT(run(1, 0), ElementsAre(1, 13, 2, 24));
  EXPECT_THAT(run(0, 1), ElementsAre(21, 2, 43, 4));
  EXPECT_THAT(run(1, 1), ElementsAre(31, 3, 42, 4));
}

TEST(FusedGemm, ComputesEachFunction) {
  const auto of_minus_one = [](const char* name) {
    const Attributes given = attributes_of({{"activation", name},
                                            {"activation_alpha", 0.5F},
                                            {"activation_beta", 2.0F},
                                            {"activation_gamma", 3.0F}});
    return values(
        run_contrib("FusedGemm", given, {floats({1, 1}, {-1}), floats({1, 1}, {1})})[0])[0];
  };
  const float power = std::exp(-1.0F);
  EXPECT_FLOAT_EQ(of_minus_one("Celu"), 0.5F * (std::exp(-2.0F) - 1));
  EXPECT_FLOAT_EQ(of_minus_one("Clip"), 0.5F);
  EXPECT_FLOAT_EQ(of_minus_one("Elu"), 0.5F * (power - 1));
  EXPECT_FLOAT_EQ(of_minus_one("HardSigmoid"), 1);
  EXPECT_FLOAT_EQ(of_minus_one("LeakyRelu"), -0.5F);
  EXPECT_FLOAT_EQ(of_minus_one("ParametricSoftplus"), 0.5F * std::log(1 + std::exp(-2.0F)));
  EXPECT_FLOAT_EQ(of_minus_one("Relu"), 0);
  EXPECT_FLOAT_EQ(of_minus_one("ScaledTanh"), 0.5F * std::tanh(-2.0F));
  EXPECT_FLOAT_EQ(of_minus_one("Selu"), 3 * 0.5F * (power - 1));
  EXPECT_FLOAT_EQ(of_minus_one("Sigmoid"), power / (1 + power));
  EXPECT_FLOAT_EQ(of_minus_one("Softplus"), std::log(1 + power));
  EXPECT_FLOAT_EQ(of_minus_one("Softsign"), -0.5F);
  EXPECT_FLOAT_EQ(of_minus_one("Tanh"), std::tanh(-1.0F));
  EXPECT_FLOAT_EQ(of_minus_one("ThresholdedRelu"), 0);
}

TEST(FusedGemm, RefusesWrongShapes) {
  EXPECT_THAT(contrib_refusal("FusedGemm", {}, {kLeft, floats({1, 2}, {1, 2})}),
              HasSubstr("expected 2 along axis 0"));
  EXPECT_THAT(contrib_refusal("FusedGemm", {}, {kLeft, floats({1, 2})}),
              HasSubstr("expected rank 2"));
  EXPECT_THAT(contrib_refusal("FusedGemm", {}, {kLeft, kRight, floats({1, 2, 3})}),
              HasSubstr("broadcasts to [2x2]"));
}

}  // namespace
}  // namespace tessera::ops
