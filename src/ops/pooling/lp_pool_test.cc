#include <cmath>

#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

Attributes lp_window(std::vector<int64_t> kernel, std::initializer_list<NamedAttribute> others) {
  Attributes attributes = attributes_of(others);
  attributes.set("kernel_shape", std::move(kernel));
  return attributes;
}

TEST(LpPool, IsTheNormOfEachWindow) {
  const Tensor input = floats({1, 1, 4}, {3, -4, 0, 12});
  const auto pooled = [&](int64_t p) {
    return values(run_op("LpPool", 11, lp_window({2}, {{"p", p}}), {input})[0]);
  };
  EXPECT_THAT(values(run_op("LpPool", 6, lp_window({2}, {}), {input})[0]), ElementsAre(5, 4, 12));
  EXPECT_THAT(pooled(1), ElementsAre(7, 4, 12));
  EXPECT_THAT(pooled(3), Pointwise(FloatNear(1e-5F), {std::cbrt(91.0F), 4.0F, 12.0F}));
}

TEST(LpPool, CountsPaddingAsZerosAndKnowsTheWindowAttributes) {
  const Tensor input = floats({1, 1, 2, 2}, {3, 4, -6, 8});
  const Attributes padded = lp_window({2, 2}, {{"pads", {1, 1, 0, 0}}, {"strides", {2, 2}}});
  EXPECT_THAT(values(run_op("LpPool", 22, padded, {input})[0]), ElementsAre(3));
  const Tensor line = floats({1, 1, 6}, {1, -2, 3, -4, 5, 6});
  const Attributes dilated =
      lp_window({2}, {{"strides", {2}}, {"dilations", {2}}, {"ceil_mode", 1}, {"p", 1}});
  EXPECT_THAT(values(run_op("LpPool", 18, dilated, {line})[0]), ElementsAre(4, 8, 5));
  const Attributes same = lp_window({2}, {{"auto_pad", "SAME_UPPER"}, {"p", 1}});
  EXPECT_THAT(values(run_op("LpPool", 18, same, {line})[0]), ElementsAre(3, 5, 7, 9, 11, 6));
  const Tensor cube = floats({1, 1, 1, 2, 1}, {3, 4});
  EXPECT_THAT(values(run_op("LpPool", 18, lp_window({1, 2, 1}, {}), {cube})[0]), ElementsAre(5));
}

TEST(LpPool, ScalesPowersThatOverflow) {
  const Tensor input = floats({1, 1, 2}, {1e30F, 1e30F});
  const Tensor pooled = run_op("LpPool", 18, lp_window({2}, {{"p", 20}}), {input})[0];
  EXPECT_NEAR(values(pooled)[0] / 1e30F, std::pow(2.0, 0.05), 1e-6);
}

TEST(LpPool, RefusesOrdersThatAreNoNorm) {
  const Tensor input = floats({1, 1, 2}, {1, 2});
  for (const int64_t p : {0, -1}) {
    EXPECT_THAT(refusal("LpPool", 18, lp_window({2}, {{"p", p}}), {input}),
                HasSubstr("an order of at least 1"));
    EXPECT_THAT(refusal("GlobalLpPool", 22, attributes_of({{"p", p}}), {input}),
                HasSubstr("an order of at least 1"));
  }
  EXPECT_THAT(refusal("LpPool", 18, lp_window({2, 2}, {}), {input}), HasSubstr("'kernel_shape'"));
}

TEST(GlobalLpPool, IsTheNormOfEachChannel) {
  const Tensor input = floats({1, 2, 2}, {3, -4, 5, -12});
  const Tensor pooled = run_op("GlobalLpPool", 6, {}, {input})[0];
  EXPECT_EQ(pooled.dims(), (std::vector<int64_t>{1, 2, 1}));
  EXPECT_THAT(values(pooled), ElementsAre(5, 13));
  EXPECT_THAT(values(run_op("GlobalLpPool", 22, attributes_of({{"p", 1}}), {input})[0]),
              ElementsAre(7, 17));
  EXPECT_THAT(values(run_op("GlobalLpPool", 22, {}, {floats({1, 1, 0}, {})})[0]), ElementsAre(0));
}

}  // namespace
}  // namespace tessera::ops
