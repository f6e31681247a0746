#include <cmath>

#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

TEST(LpNormalization, DividesEachLineByItsNorm) {
  const Tensor input = floats({2, 2}, {3, -4, 0, 5});
  const auto normalized = [&](int64_t axis, int64_t p) {
    return values(
        run_op("LpNormalization", 22, attributes_of({{"axis", axis}, {"p", p}}), {input})[0]);
  };
  EXPECT_THAT(values(run_op("LpNormalization", 6, {}, {input})[0]),
              Pointwise(FloatNear(1e-7F), {0.6F, -0.8F, 0.0F, 1.0F}));
  EXPECT_THAT(normalized(-1, 1), Pointwise(FloatNear(1e-7F), {3.0F / 7, -4.0F / 7, 0.0F, 1.0F}));
  EXPECT_THAT(normalized(0, 1), Pointwise(FloatNear(1e-7F), {1.0F, -4.0F / 9, 0.0F, 5.0F / 9}));
}

TEST(LpNormalization, LeavesZerosAndDoesNotOverflow) {
  EXPECT_THAT(values(run_op("LpNormalization", 6, {}, {floats({2}, {0, 0})})[0]),
              ElementsAre(0, 0));
  for (const double scale : {1e200, 1e-200}) {
    const Tensor input =
        Tensor::from<double>(DataType::Float64, {2}, std::vector<double>{3 * scale, 4 * scale});
    const Tensor output = run_op("LpNormalization", 6, {}, {input})[0];
    EXPECT_NEAR(output.as<double>()[0], 0.6, 1e-15);
    EXPECT_NEAR(output.as<double>()[1], 0.8, 1e-15);
  }
  EXPECT_TRUE(std::isnan(values(run_op("LpNormalization", 6, {}, {floats({2}, {kNan, 0})})[0])[1]));
}

TEST(LpNormalization, RefusesOtherOrdersAndAxes) {
  const Tensor input = floats({2}, {1, 2});
  EXPECT_THAT(refusal("LpNormalization", 6, attributes_of({{"p", 3}}), {input}),
              HasSubstr("expected 1 or 2, found 3"));
  EXPECT_THAT(refusal("LpNormalization", 6, attributes_of({{"axis", 1}}), {input}),
              HasSubstr("[-1, 1)"));
}

}  // namespace
}  // namespace tessera::ops
