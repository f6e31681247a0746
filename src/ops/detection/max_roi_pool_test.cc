#include <numeric>

#include "ops/float_types_test.h"

namespace tessera::ops {
namespace {

Attributes roi_attributes(std::vector<int64_t> shape) {
  return attributes_of({{"pooled_shape", std::move(shape)}});
}

Tensor counted_image() {
  std::vector<float> elements(30);
  std::iota(elements.begin(), elements.end(), 0.0F);
  return floats({1, 1, 5, 6}, elements);
}

TEST(MaxRoiPool, GivesTheLargestOfEachBin) {
  // Rows 1 to 3 and columns 0 to 4: both borders belong to the region. Bins of 1.5 rows and 2.5
  // columns are rounded outwards.
  const std::vector<Tensor> inputs = {counted_image(), floats({1, 5}, {0, 0, 1, 4, 3})};
  EXPECT_THAT(values(run_op("MaxRoiPool", 1, roi_attributes({2, 2}), inputs)[0]),
              ElementsAre(14, 16, 20, 22));
  EXPECT_THAT(values(run_op("MaxRoiPool", 22, roi_attributes({1, 1}), inputs)[0]), ElementsAre(22));
}

TEST(MaxRoiPool, ScalesAndRoundsRegions) {
  Attributes attributes = roi_attributes({1, 2});
  attributes.set("spatial_scale", 0.5F);
  // 2.5 becomes 3, 1.25 becomes 1.
  const std::vector<Tensor> inputs = {counted_image(), floats({1, 5}, {0, 2.5F, 2, 5, 4})};
  EXPECT_THAT(values(run_op("MaxRoiPool", 1, attributes, inputs)[0]), ElementsAre(14, 15));
}

TEST(MaxRoiPool, ClipsRegionsAndGivesZeroForEmptyBins) {
  const Tensor negative = floats({1, 1, 2, 2}, {-4, -3, -2, -1});
  const std::vector<Tensor> inputs = {
      negative, floats({3, 5}, {0, -2, -2, 0, 0, 0, 7, 7, 9, 9, 0, 1, 1, 0, 0})};
  // The last region is turned over, so it is one element.
  EXPECT_THAT(values(run_op("MaxRoiPool", 1, roi_attributes({1, 1}), inputs)[0]),
              ElementsAre(-4, 0, -1));
}

TEST(MaxRoiPool, PropagatesNanAndInfinity) {
  const Tensor image = floats({1, 1, 1, 4}, {1, kNan, -kInfinity, -kInfinity});
  const std::vector<Tensor> inputs = {image, floats({1, 5}, {0, 0, 0, 3, 0})};
  const auto found = values(run_op("MaxRoiPool", 1, roi_attributes({1, 2}), inputs)[0]);
  EXPECT_TRUE(std::isnan(found[0]));
  EXPECT_EQ(found[1], -kInfinity);
}

TEST(MaxRoiPool, HasAllFloatingTypes) {
  for (const int64_t type : kOnnxFloatTypes) {
    const std::vector<Tensor> inputs = {cast_onnx(counted_image(), type),
                                        cast_onnx(floats({1, 5}, {0, 0, 1, 4, 3}), type)};
    EXPECT_THAT(as_floats(run_op("MaxRoiPool", 22, roi_attributes({2, 2}), inputs)[0]),
                ElementsAre(14, 16, 20, 22));
  }
}

TEST(MaxRoiPool, EndsForHugeRegions) {
  for (const float far : {1e20F, kInfinity, kNan}) {
    const std::vector<Tensor> inputs = {
        counted_image(), floats({2, 5}, {0, -far, -far, far, far, 0, far, far, -far, -far})};
    EXPECT_EQ(run_op("MaxRoiPool", 1, roi_attributes({2, 2}), inputs)[0].elements(), 8);
  }
}

TEST(MaxRoiPool, RefusesWrongModels) {
  const Tensor region = floats({1, 5}, {0, 0, 0, 1, 1});
  const auto refused = [&](std::vector<int64_t> shape, const Tensor& regions) {
    return refusal("MaxRoiPool", 1, roi_attributes(std::move(shape)), {counted_image(), regions});
  };
  EXPECT_THAT(refused({1}, region), HasSubstr("'pooled_shape' of a height and a width"));
  EXPECT_THAT(refused({2, 0}, region), HasSubstr("found 2x0"));
  EXPECT_THAT(refused({1, 1}, floats({1, 4}, {0, 0, 1, 1})), HasSubstr("5 numbers each"));
  EXPECT_THAT(refused({1, 1}, floats({1, 5}, {1, 0, 0, 1, 1})), HasSubstr("[0, 1), found 1"));
  EXPECT_THAT(refused({1, 1}, floats({1, 5}, {-1, 0, 0, 1, 1})), HasSubstr("found -1"));
}

}  // namespace
}  // namespace tessera::ops
