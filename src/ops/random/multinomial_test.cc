#include <algorithm>
#include <cmath>

#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

TEST(Multinomial, DrawsWithTheProbabilitiesOfTheRow) {
  constexpr int64_t kSamples = 40000;
  // Probabilities 0.2, 0.5 and 0.3 in the first row, in the second one outcome alone.
  const Tensor input = floats({2, 3}, {std::log(2.0F), std::log(5.0F), std::log(3.0F),  //
                                       -kInfinity, 700, -kInfinity});
  const Attributes given = attributes_of({{"sample_size", kSamples}, {"dtype", 7}, {"seed", 1.0F}});
  const Tensor drawn = run_op("Multinomial", 7, given, {input})[0];
  EXPECT_EQ(drawn.dims(), (std::vector<int64_t>{2, kSamples}));
  const std::vector<int64_t> outcomes = integers(drawn);
  const auto part = [&](int64_t outcome) {
    return static_cast<double>(std::count(outcomes.begin(), outcomes.begin() + kSamples, outcome)) /
           kSamples;
  };
  // 5 standard errors.
  EXPECT_NEAR(part(0), 0.2, 0.01);
  EXPECT_NEAR(part(1), 0.5, 0.0125);
  EXPECT_NEAR(part(2), 0.3, 0.0115);
  EXPECT_EQ(std::count(outcomes.begin() + kSamples, outcomes.end(), 1), kSamples);
  EXPECT_EQ(outcomes, integers(run_op("Multinomial", 22, given, {input})[0]));
}

TEST(Multinomial, GivesOneInt32ByDefault) {
  const Tensor drawn = run_op("Multinomial", 7, {}, {floats({2, 1}, {3, 4})})[0];
  EXPECT_EQ(drawn.type(), DataType::Int32);
  EXPECT_EQ(drawn.dims(), (std::vector<int64_t>{2, 1}));
  EXPECT_THAT(drawn.as<int32_t>(), ElementsAre(0, 0));
}

TEST(Multinomial, RefusesRowsWithoutAnOutcome) {
  const Tensor row = floats({1, 2}, {0, 0});
  EXPECT_THAT(refusal("Multinomial", 7, {}, {floats({2}, {0, 0})}), HasSubstr("found shape 2"));
  EXPECT_THAT(refusal("Multinomial", 7, {}, {floats({2, 0}, {})}), HasSubstr("found shape 2x0"));
  EXPECT_THAT(refusal("Multinomial", 7, attributes_of({{"sample_size", 0}}), {row}),
              HasSubstr("at least 1, found 0"));
  EXPECT_THAT(refusal("Multinomial", 7, attributes_of({{"dtype", 1}}), {row}),
              HasSubstr("expected the number of int32 or int64"));
  EXPECT_THAT(refusal("Multinomial", 7, {}, {floats({1, 2}, {-kInfinity, -kInfinity})}),
              HasSubstr("-infinity for all"));
  EXPECT_THAT(refusal("Multinomial", 7, {}, {floats({1, 2}, {0, kNan})}), HasSubstr("found NaN"));
}

}  // namespace
}  // namespace tessera::ops
