#include <cmath>

#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

Attributes moment_axes(std::vector<int64_t> axes) {
  Attributes attributes;
  attributes.set("axes", std::move(axes));
  return attributes;
}

TEST(MeanVarianceNormalization, NormalizesEachChannelByDefault) {
  // Channel 0 has 1, 3, 5, 7 with mean 4 and deviation sqrt(5); channel 1 has 0, 0, 2, 2.
  const Tensor input = floats({2, 2, 1, 2}, {1, 3, 0, 0, 5, 7, 2, 2});
  const float unit = 1 / std::sqrt(5.0F);
  const std::vector<float> expected = {-3 * unit, -unit, -1, -1, unit, 3 * unit, 1, 1};
  for (const int opset : {9, 13}) {
    EXPECT_THAT(values(run_op("MeanVarianceNormalization", opset, {}, {input})[0]),
                Pointwise(FloatNear(1e-6F), expected));
  }
}

TEST(MeanVarianceNormalization, TakesAnyAxes) {
  const Tensor input = floats({2, 2}, {1, 3, 5, 9});
  const auto along = [&](std::vector<int64_t> axes) {
    return values(
        run_op("MeanVarianceNormalization", 13, moment_axes(std::move(axes)), {input})[0]);
  };
  EXPECT_THAT(along({1}), Pointwise(FloatNear(1e-6F), {-1.0F, 1.0F, -1.0F, 1.0F}));
  EXPECT_THAT(along({-2}), Pointwise(FloatNear(1e-6F), {-1.0F, -1.0F, 1.0F, 1.0F}));
  const float deviation = std::sqrt(8.75F);
  const std::vector<float> of_all = {-3.5F / deviation, -1.5F / deviation, 0.5F / deviation,
                                     4.5F / deviation};
  EXPECT_THAT(along({0, 1}), Pointwise(FloatNear(1e-6F), of_all));
  EXPECT_THAT(along({}), Pointwise(FloatNear(1e-6F), of_all));
}

// Of ONNX's function: 0 / (0 + 1e-9).
TEST(MeanVarianceNormalization, OfEqualElementsIsZero) {
  EXPECT_THAT(values(run_op("MeanVarianceNormalization", 13, moment_axes({0}),
                            {floats({3}, {1e6F, 1e6F, 1e6F})})[0]),
              ElementsAre(0, 0, 0));
}

TEST(MeanVarianceNormalization, RefusesWrongAxes) {
  const Tensor input = floats({1, 2, 1}, {1, 2});
  EXPECT_THAT(refusal("MeanVarianceNormalization", 13, {}, {input}), HasSubstr("[-3, 3)"));
  EXPECT_THAT(refusal("MeanVarianceNormalization", 13, moment_axes({1, -2}), {input}),
              HasSubstr("twice"));
  const auto open =
      infer_op("MeanVarianceNormalization", 13, {}, {typed(DataType::Float32, std::nullopt)});
  EXPECT_FALSE(open[0].type.shape);
}

}  // namespace
}  // namespace tessera::ops
