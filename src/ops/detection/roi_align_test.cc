#include <numeric>

#include "ops/float_types_test.h"

namespace tessera::ops {
namespace {

Attributes alignment(const std::string& mode, int64_t samples, int64_t size) {
  return attributes_of({{"mode", mode},
                        {"sampling_ratio", samples},
                        {"output_height", size},
                        {"output_width", size}});
}

// An image of 4 x 4 whose element in row y and column x is 4 y + x, so that interpolation gives the
// position.
Tensor slope() {
  std::vector<float> elements(16);
  std::iota(elements.begin(), elements.end(), 0.0F);
  return floats({1, 1, 4, 4}, elements);
}

TEST(RoiAlign, InterpolatesSamples) {
  const std::vector<Tensor> inputs = {slope(), floats({1, 4}, {0.5F, 0.5F, 2.5F, 2.5F}), ints({0})};
  // With the shift by half a pixel, bins are centred at 0.5 and 1.5.
  EXPECT_THAT(values(run_op("RoiAlign", 16, alignment("avg", 1, 2), inputs)[0]),
              ElementsAre(2.5F, 3.5F, 6.5F, 7.5F));
  EXPECT_THAT(values(run_op("RoiAlign", 10, alignment("avg", 1, 2), inputs)[0]),
              ElementsAre(5, 6, 9, 10));
  Attributes without_shift = alignment("avg", 2, 1);
  without_shift.set("coordinate_transformation_mode", std::string("output_half_pixel"));
  EXPECT_THAT(values(run_op("RoiAlign", 22, without_shift, inputs)[0]), ElementsAre(7.5F));
}

TEST(RoiAlign, TakesOneSampleForEachPixelByDefault) {
  const std::vector<Tensor> inputs = {slope(), floats({1, 4}, {0, 0, 4, 4}), ints({0})};
  // Bins of 2 pixels, with samples at 0 and 1, and at 2 and 3.
  EXPECT_THAT(values(run_op("RoiAlign", 16, alignment("avg", 0, 2), inputs)[0]),
              ElementsAre(2.5F, 4.5F, 10.5F, 12.5F));
}

TEST(RoiAlign, TakesTheLargestWeightedNeighbour) {
  // The sample lies at (0.75, 0.75): weights 1/16, 3/16, 3/16, 9/16 of 0, 1, 4, 5.
  const std::vector<Tensor> inputs = {slope(), floats({1, 4}, {0.75F, 0.75F, 1.75F, 1.75F}),
                                      ints({0})};
  EXPECT_THAT(values(run_op("RoiAlign", 16, alignment("max", 1, 1), inputs)[0]),
              ElementsAre(45.0F / 16));
}

TEST(RoiAlign, CountsSamplesOutsideAsZero) {
  const Tensor ones = floats({1, 1, 2, 2}, {-1, -1, -1, -1});
  // Two of four samples lie more than a pixel above the image.
  const std::vector<Tensor> inputs = {ones, floats({1, 4}, {0.5F, -3.5F, 1.5F, 2.5F}), ints({0})};
  EXPECT_THAT(values(run_op("RoiAlign", 16, alignment("avg", 2, 1), inputs)[0]),
              ElementsAre(-0.5F));
  EXPECT_THAT(values(run_op("RoiAlign", 16, alignment("max", 2, 1), inputs)[0]), ElementsAre(0));
  const std::vector<Tensor> far = {ones, floats({1, 4}, {90, 90, 91, 91}), ints({0})};
  for (const char* mode : {"avg", "max"}) {
    EXPECT_THAT(values(run_op("RoiAlign", 16, alignment(mode, 2, 1), far)[0]), ElementsAre(0));
  }
}

TEST(RoiAlign, ScalesRegionsAndTakesThemFromTheirImages) {
  const Tensor images = floats({2, 2, 1, 1}, {1, 2, 3, 4});
  Attributes attributes = alignment("avg", 1, 1);
  attributes.set("spatial_scale", 0.25F);
  const std::vector<Tensor> inputs = {images, floats({2, 4}, {0, 0, 4, 4, 0, 0, 4, 4}),
                                      ints({1, 0})};
  EXPECT_THAT(values(run_op("RoiAlign", 16, attributes, inputs)[0]), ElementsAre(3, 4, 1, 2));
}

TEST(RoiAlign, EnlargesSmallRegionsOnlyWithoutTheShift) {
  // A region without an extent: before version 16 it becomes one pixel, from 1 to 2.
  const std::vector<Tensor> inputs = {slope(), floats({1, 4}, {1, 1, 1, 1}), ints({0})};
  EXPECT_THAT(values(run_op("RoiAlign", 10, alignment("avg", 0, 1), inputs)[0]), ElementsAre(7.5F));
  // With the shift it has no samples, if their number is that of pixels, or all at one place.
  EXPECT_THAT(values(run_op("RoiAlign", 16, alignment("avg", 0, 1), inputs)[0]), ElementsAre(0));
  EXPECT_THAT(values(run_op("RoiAlign", 16, alignment("avg", 2, 1), inputs)[0]), ElementsAre(2.5F));
}

TEST(RoiAlign, HasAllFloatingTypes) {
  for (const int64_t type : kOnnxFloatTypes) {
    const std::vector<Tensor> inputs = {cast_onnx(slope(), type),
                                        cast_onnx(floats({1, 4}, {0.5F, 0.5F, 2.5F, 2.5F}), type),
                                        ints({0})};
    EXPECT_THAT(as_floats(run_op("RoiAlign", 22, alignment("avg", 1, 2), inputs)[0]),
                ElementsAre(2.5F, 3.5F, 6.5F, 7.5F));
  }
}

TEST(RoiAlign, EndsForHugeAndUnorderedRegions) {
  for (const float far : {1e6F, 1e20F, kInfinity, kNan}) {
    for (const int64_t samples : {0, 3}) {
      const std::vector<Tensor> inputs = {slope(),
                                          floats({2, 4}, {-far, -far, far, far,  //
                                                          far, far, -far, -far}),
                                          ints({0, 0})};
      EXPECT_EQ(run_op("RoiAlign", 16, alignment("avg", samples, 2), inputs)[0].elements(), 8);
      EXPECT_EQ(run_op("RoiAlign", 10, alignment("max", samples, 2), inputs)[0].elements(), 8);
    }
  }
}

TEST(RoiAlign, TakesEmptyInputs) {
  EXPECT_EQ(run_op("RoiAlign", 16, {}, {slope(), floats({0, 4}, {}), ints({0}, {})})[0].elements(),
            0);
  const Tensor flat = floats({1, 1, 0, 4}, {});
  EXPECT_THAT(values(run_op("RoiAlign", 16, alignment("avg", 2, 1),
                            {flat, floats({1, 4}, {0, 0, 1, 1}), ints({0})})[0]),
              ElementsAre(0));
}

TEST(RoiAlign, InfersSymbols) {
  const auto inferred =
      infer_op("RoiAlign", 16, alignment("avg", 0, 7),
               {typed(DataType::Float32, Shape{1, 256, Dim::symbol("h"), Dim::symbol("w")}),
                typed(DataType::Float32, std::nullopt),
                typed(DataType::Int64, Shape{Dim::symbol("regions")})});
  EXPECT_EQ(shape_text(inferred), "float32 regionsx256x7x7");
}

TEST(RoiAlign, RefusesWrongModels) {
  const Tensor region = floats({1, 4}, {0, 0, 1, 1});
  const auto refused = [&](const Attributes& attributes, const std::vector<Tensor>& inputs) {
    return refusal("RoiAlign", 16, attributes, inputs);
  };
  const std::vector<Tensor> fine = {slope(), region, ints({0})};
  EXPECT_THAT(refused(attributes_of({{"mode", "sum"}}), fine), HasSubstr("'avg' or 'max'"));
  EXPECT_THAT(refused(attributes_of({{"coordinate_transformation_mode", "pixel"}}), fine),
              HasSubstr("'output_half_pixel', found 'pixel'"));
  EXPECT_THAT(refused(attributes_of({{"sampling_ratio", -1}}), fine), HasSubstr("found -1"));
  EXPECT_THAT(refused(attributes_of({{"output_width", 0}}), fine),
              HasSubstr("'output_width' of at least 1, found 0"));
  EXPECT_THAT(refused({}, {floats({4}, {0, 0, 0, 0}), region, ints({0})}),
              HasSubstr("batch x channels x height x width, found 4"));
  EXPECT_THAT(refused({}, {slope(), floats({1, 5}, {0, 0, 0, 1, 1}), ints({0})}),
              HasSubstr("regions of 4 numbers each, found shape 1x5"));
  EXPECT_THAT(refused({}, {slope(), region, ints({0, 0})}), HasSubstr("of 1 regions"));
  EXPECT_THAT(refused({}, {slope(), region, ints({1})}), HasSubstr("in [0, 1), found 1"));
  EXPECT_THAT(refused({}, {slope(), region, ints({-1})}), HasSubstr("in [0, 1), found -1"));
  EXPECT_THROW(run_op("RoiAlign", 16, attributes_of({{"sampling_ratio", 5000}}), fine), Error);
}

}  // namespace
}  // namespace tessera::ops
