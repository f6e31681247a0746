#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

TEST(RMSNormalization, DividesByTheRootMeanSquare) {
  // The mean of the squares is 25, then 1.
  const auto outputs = run_op("RMSNormalization", 23, attributes_of({{"epsilon", 0.0F}}),
                              {floats({2, 2}, {1, 7, -1, 1}), floats({2}, {5, 10})});
  EXPECT_THAT(values(outputs[0]), ElementsAre(1, 14, -5, 10));
}

TEST(RMSNormalization, NormalisesAllAxesFromTheGivenOneOn) {
  const auto given = attributes_of({{"epsilon", 0.0F}, {"axis", int64_t{0}}});
  const auto outputs = run_op("RMSNormalization", 23, given,
                              {floats({2, 2}, {1, 7, 7, 1}), floats({2, 1}, {5, 10})});
  EXPECT_THAT(values(outputs[0]), ElementsAre(1, 7, 14, 2));
  const auto epsilon = attributes_of({{"epsilon", 3.0F}});
  EXPECT_THAT(
      values(run_op("RMSNormalization", 23, epsilon, {floats({1}, {1}), floats({1}, {1})})[0]),
      ElementsAre(0.5F));
}

TEST(RMSNormalization, TheResultHasTheTypeOfTheScale) {
  const Tensor wide = Tensor::from<double>(DataType::Float64, {1}, std::vector<double>{2});
  const auto outputs = run_op("RMSNormalization", 23, {}, {wide, floats({1}, {3})});
  EXPECT_EQ(outputs[0].type(), DataType::Float32);
  EXPECT_NEAR(values(outputs[0])[0], 3, 1e-4F);
}

TEST(RMSNormalization, RefusesWhatDoesNotFit) {
  const auto refused = [&](Attributes given, const Tensor& scale) {
    return refusal("RMSNormalization", 23, std::move(given), {floats({2, 2}, {1, 2, 3, 4}), scale});
  };
  EXPECT_THAT(refused({}, floats({3}, {1, 2, 3})), HasSubstr("broadcasts to input 'X' (2x2)"));
  EXPECT_THAT(refused(attributes_of({{"axis", int64_t{2}}}), floats({2}, {1, 2})),
              HasSubstr("[-2, 2)"));
  EXPECT_THAT(refused(attributes_of({{"stash_type", int64_t{7}}}), floats({2}, {1, 2})),
              HasSubstr("found 7"));
}

}  // namespace
}  // namespace tessera::ops
