#include "ops/contrib/contrib_test.h"

namespace tessera::ops {
namespace {

// (1 + 2i) (3 + 4i) = -5 + 10i; (1 + 2i) (3 - 4i) = 11 + 2i.
TEST(ComplexMul, MultipliesAndBroadcasts) {
  const Tensor left = floats({2, 1, 2}, {1, 2, 0, 1});
  const Tensor right = floats({1, 2}, {3, 4});
  const auto product = run_contrib("ComplexMul", {}, {left, right});
  EXPECT_THAT(product[0].dims(), ElementsAre(2, 1, 2));
  EXPECT_THAT(values(product[0]), ElementsAre(-5, 10, -4, 3));
  EXPECT_THAT(values(run_contrib("ComplexMulConj", {}, {left, right})[0]),
              ElementsAre(11, 2, 4, 3));
}

TEST(ComplexMul, RefusesOtherLastAxes) {
  const Tensor pair = floats({1, 2});
  EXPECT_THAT(contrib_refusal("ComplexMul", {}, {pair, floats({1, 2, 3})}),
              HasSubstr("2 elements along the last axis"));
  EXPECT_THAT(contrib_refusal("ComplexMul", {}, {floats({}, {1}), pair}),
              HasSubstr("2 elements along the last axis"));
}

}  // namespace
}  // namespace tessera::ops
