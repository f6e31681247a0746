#include "ops/contrib/contrib_test.h"

namespace tessera::ops {
namespace {

TEST(CDist, MeasuresEachPairOfRows) {
  const Tensor left = floats({2, 2}, {0, 0, 3, 4});
  const Tensor right = floats({3, 2}, {0, 0, 0, 1, 3, 0});
  EXPECT_THAT(values(run_contrib("CDist", {}, {left, right})[0]), ElementsAre(0, 1, 9, 25, 18, 16));
  EXPECT_THAT(values(run_contrib("CDist", attributes_of({{"metric", "euclidean"}}),
                                 {left, floats({1, 2}, {0, 0})})[0]),
              ElementsAre(0, 5));
}

// Of rows that are far from 0 and near each other: |a|^2 + |b|^2 - 2 a b would have no digit.
TEST(CDist, KeepsTheDigitsOfNearRows) {
  const Tensor left = floats({2, 2}, {1e6F, 1e6F, 1e30F, 1});
  const Tensor right = floats({2, 2}, {1e6F + 0.125F, 1e6F, 1e30F, 1});
  EXPECT_THAT(values(run_contrib("CDist", {}, {left, right})[0]),
              ElementsAre(0.015625F, testing::Gt(1e37F), testing::Gt(1e37F), 0));
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(
      values(run_contrib("CDist", {}, {floats({1, 1}, {infinity}), floats({1, 1}, {1})})[0]),
      ElementsAre(infinity));
}

TEST(CDist, RefusesOtherMetricsAndShapes) {
  const Tensor matrix = floats({1, 2}, {1, 2});
  EXPECT_THAT(contrib_refusal("CDist", attributes_of({{"metric", "cosine"}}), {matrix, matrix}),
              HasSubstr("found 'cosine'"));
  EXPECT_THAT(contrib_refusal("CDist", {}, {matrix, floats({1, 1}, {1})}),
              HasSubstr("expected shape [1x2]"));
  EXPECT_THAT(contrib_refusal("CDist", {}, {matrix, floats({1, 2})}), HasSubstr("expected rank 2"));
}

}  // namespace
}  // namespace tessera::ops
