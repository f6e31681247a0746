#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

constexpr const char* kOp = "SimplifiedLayerNormalization";

// The root of the mean square of 3 and 4 is 3.5355; of 1, 1, 1 and 5 it is 2.6458.
TEST(SimplifiedLayerNormalization, DividesByTheRootOfTheMeanSquare) {
  const auto rows = run_op(kOp, 17, {}, {floats({2, 2}, {3, 4, 30, 40}), floats({1, 2})}, 2);
  EXPECT_THAT(
      values(rows[0]),
      Pointwise(FloatNear(1e-5F), std::vector<float>{0.848528F, 2.262742F, 0.848528F, 2.262742F}));
  EXPECT_THAT(values(rows[1]),
              Pointwise(FloatNear(1e-5F), std::vector<float>{0.282843F, 0.028284F}));
  EXPECT_THAT(rows[1].dims(), ElementsAre(2, 1));
}

TEST(SimplifiedLayerNormalization, TakesAllAxesFromItsOwnOn) {
  const auto all = run_op(kOp, 17, attributes_of({{"axis", 0}}),
                          {floats({2, 2}, {1, 1, 1, 5}), floats({2, 2}, {1, 1, 1, 2})});
  EXPECT_THAT(
      values(all[0]),
      Pointwise(FloatNear(1e-4F), std::vector<float>{0.377964F, 0.377964F, 0.377964F, 3.779645F}));
}

TEST(SimplifiedLayerNormalization, GivesTheTypeOfTheScale) {
  const Tensor scale = Tensor::from<double>(DataType::Float64, {2}, std::vector<double>{1, 1});
  const auto rows =
      run_op(kOp, 17, attributes_of({{"stash_type", 11}}), {floats({1, 2}, {3, 4}), scale}, 2);
  EXPECT_EQ(rows[0].type(), DataType::Float64);
  EXPECT_EQ(rows[1].type(), DataType::Float64);
}

TEST(SimplifiedLayerNormalization, RefusesWrongShapes) {
  const Tensor input = floats({1, 2}, {3, 4});
  EXPECT_THAT(refusal(kOp, 17, {}, {input, floats({1, 2, 3})}), HasSubstr("broadcasts to input"));
  EXPECT_THAT(refusal(kOp, 17, attributes_of({{"axis", 2}}), {input, input}), HasSubstr("[-2, 2)"));
  EXPECT_THAT(refusal(kOp, 17, attributes_of({{"stash_type", 7}}), {input, input}),
              HasSubstr("found 7"));
}

}  // namespace
}  // namespace tessera::ops
