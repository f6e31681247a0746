#include <algorithm>
#include <numeric>

#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

TEST(Bernoulli, DrawsWithTheProbabilityOfEachElement) {
  constexpr int64_t kEvents = 40000;
  const Tensor input = floats({kEvents}, std::vector<float>(kEvents, 0.3F));
  const std::vector<float> drawn =
      values(run_op("Bernoulli", 15, attributes_of({{"seed", 5.0F}}), {input})[0]);
  EXPECT_THAT(drawn, testing::Each(AnyOf(0.0F, 1.0F)));
  // 5 standard errors.
  EXPECT_NEAR(std::accumulate(drawn.begin(), drawn.end(), 0.0) / kEvents, 0.3, 0.0115);
  EXPECT_EQ(drawn, values(run_op("Bernoulli", 22, attributes_of({{"seed", 5.0F}}), {input})[0]));
  EXPECT_NE(drawn, values(run_op("Bernoulli", 22, {}, {input})[0]));
}

TEST(Bernoulli, IsCertainAtTheEndsAndBeyond) {
  const Tensor input = floats({5}, {0, 1, -3, 2, kNan});
  for (int round = 0; round < 20; ++round) {
    EXPECT_THAT(values(run_op("Bernoulli", 15, {}, {input})[0]), ElementsAre(0, 1, 0, 1, 0));
  }
}

TEST(Bernoulli, HasTheTypeOfTheAttribute) {
  const Tensor input = floats({3}, {0, 1, 1});
  EXPECT_THAT(bytes(run_op("Bernoulli", 15, attributes_of({{"dtype", 9}}), {input})[0]),
              ElementsAre(0, 1, 1));
  EXPECT_THAT(integers(run_op("Bernoulli", 15, attributes_of({{"dtype", 7}}), {input})[0]),
              ElementsAre(0, 1, 1));
  EXPECT_THAT(refusal("Bernoulli", 15, attributes_of({{"dtype", 8}}), {input}),
              HasSubstr("found 8 (string)"));
  EXPECT_THAT(refusal("Bernoulli", 15, attributes_of({{"dtype", 99}}), {input}),
              HasSubstr("found 99"));
}

}  // namespace
}  // namespace tessera::ops
