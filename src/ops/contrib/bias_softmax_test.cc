#include <cmath>

#include "ops/contrib/contrib_test.h"

namespace tessera::ops {
namespace {

// With scores of zero, softmax gives a row's own bias back if that is the logarithm of
// probabilities.
TEST(BiasSoftmax, RepeatsTheBiasInBothWays) {
  const float quarter = std::log(0.25F);
  const float rest = std::log(0.75F);
  const Tensor scores = floats({4, 2}, std::vector<float>(8, 0.0F));
  const Tensor bias = floats({2, 2}, {quarter, rest, rest, quarter});
  const auto run = [&](int64_t is_inner) {
    return values(run_contrib("BiasSoftmax", attributes_of({{"is_inner_broadcast", is_inner}}),
                              {scores, bias})[0]);
  };
  EXPECT_THAT(run(1), Pointwise(FloatNear(1e-6F), std::vector<float>{0.25F, 0.75F, 0.25F, 0.75F,
                                                                     0.75F, 0.25F, 0.75F, 0.25F}));
  EXPECT_THAT(run(0), Pointwise(FloatNear(1e-6F), std::vector<float>{0.25F, 0.75F, 0.75F, 0.25F,
                                                                     0.25F, 0.75F, 0.75F, 0.25F}));
}

TEST(BiasSoftmax, CoversAllAxesFromItsOwnOn) {
  const auto given = attributes_of({{"axis", -2}, {"is_inner_broadcast", 1}});
  const Tensor scores = floats({1, 2, 2}, {0, 0, 0, 0});
  EXPECT_THAT(values(run_contrib("BiasSoftmax", given, {scores, floats({0, 0, 0, 0})})[0]),
              ElementsAre(0.25F, 0.25F, 0.25F, 0.25F));
}

TEST(BiasSoftmax, RefusesOtherShapes) {
  const auto given = attributes_of({{"is_inner_broadcast", 1}});
  const Tensor scores = floats({2, 2}, {0, 0, 0, 0});
  EXPECT_THAT(contrib_refusal("BiasSoftmax", given, {scores, floats({1, 2, 3})}),
              HasSubstr("rows of 2 elements"));
  EXPECT_THAT(contrib_refusal("BiasSoftmax", given, {scores, floats({3, 2}, {1, 2, 3, 4, 5, 6})}),
              HasSubstr("of which 2 is a multiple"));
  EXPECT_THAT(contrib_refusal("BiasSoftmax", {}, {scores, scores}), HasSubstr("requires it"));
}

}  // namespace
}  // namespace tessera::ops
