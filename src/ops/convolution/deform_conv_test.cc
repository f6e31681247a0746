#include <numeric>

#include "ops/float_types_test.h"

namespace tessera::ops {
namespace {

// An image of 3 x 3 whose element in row y and column x is 3 y + x, so that interpolation gives the
// position.
Tensor slope_image() {
  std::vector<float> elements(9);
  std::iota(elements.begin(), elements.end(), 0.0F);
  return floats({1, 1, 3, 3}, elements);
}

// A kernel of 2 x 2: 1, 10, 100, 1000.
const Tensor kPowers = floats({1, 1, 2, 2}, {1, 10, 100, 1000});

// Offsets of one output for 4 taps, (y, x) each.
Tensor offsets_of(const std::vector<float>& offsets) { return floats({1, 8, 1, 1}, offsets); }

std::vector<float> deformed(const std::vector<Tensor>& inputs, Attributes attributes = {}) {
  return values(run_op("DeformConv", 19, std::move(attributes), inputs)[0]);
}

Attributes one_output() { return attributes_of({{"strides", list({2, 2})}}); }

TEST(DeformConv, WithoutOffsetsIsAConvolution) {
  const std::vector<Tensor> inputs = {slope_image(), kPowers,
                                      floats({1, 8, 2, 2}, std::vector<float>(32))};
  EXPECT_THAT(deformed(inputs), ElementsAre(4310, 5421, 7643, 8754));
}

TEST(DeformConv, MovesTapsAndInterpolates) {
  // Taps at (0.5, 0), (0, 0.5), (1, 0.25) and (1.25, 1.5).
  const Tensor offsets = offsets_of({0.5F, 0, 0, -0.5F, 0, 0.25F, 0.25F, 0.5F});
  EXPECT_THAT(deformed({slope_image(), kPowers, offsets}, one_output()),
              ElementsAre(1.5F + 10 * 0.5F + 100 * 3.25F + 1000 * 5.25F));
}

TEST(DeformConv, GivesZeroOutsideOfTheInput) {
  // Half of the first tap lies to the left of element 3; the others lie outside.
  const Tensor offsets = offsets_of({1, -0.5F, -2, 0, 0, kNan, kInfinity, 0});
  EXPECT_THAT(deformed({slope_image(), kPowers, offsets}, one_output()), ElementsAre(1.5F));
}

TEST(DeformConv, HasBiasAndMask) {
  const Tensor none = offsets_of(std::vector<float>(8));
  const Tensor mask = floats({1, 4, 1, 1}, {1, 0, 0.5F, 2});
  EXPECT_THAT(deformed({slope_image(), kPowers, none, floats({0.25F}), mask}, one_output()),
              ElementsAre(0.25F + 0.5F * 300 + 2 * 4000));
  EXPECT_THAT(deformed({slope_image(), kPowers, none, Tensor(), mask}, one_output()),
              ElementsAre(0.5F * 300 + 2 * 4000));
}

TEST(DeformConv, TakesPaddingAndDilations) {
  const Attributes attributes =
      attributes_of({{"pads", list({1, 1, 0, 0})}, {"dilations", list({3, 3})}});
  // Taps at -1 and 2 of each axis.
  EXPECT_THAT(deformed({slope_image(), kPowers, offsets_of(std::vector<float>(8))}, attributes),
              ElementsAre(8000));
}

TEST(DeformConv, HasGroupsOfChannelsAndOfOffsets) {
  // Two channels with weights 1 and 10 in a group each; the second one is moved by a column.
  const Tensor image = floats({1, 2, 1, 2}, {1, 2, 3, 4});
  const Tensor offsets = floats({1, 4, 1, 1}, {0, 0, 0, 1});
  Attributes attributes = attributes_of({{"offset_group", 2}, {"strides", list({1, 2})}});
  EXPECT_THAT(deformed({image, floats({1, 2, 1, 1}, {1, 10}), offsets}, attributes),
              ElementsAre(1 + 40));
  attributes.set("group", int64_t{2});
  EXPECT_THAT(deformed({image, floats({2, 1, 1, 1}, {1, 10}), offsets}, attributes),
              ElementsAre(1, 40));
}

TEST(DeformConv, HasOneAndThreeAxes) {
  const Tensor line = floats({1, 1, 3}, {1, 2, 4});
  EXPECT_THAT(deformed({line, floats({1, 1, 2}, {1, 10}), floats({1, 2, 2}, {0, 0.5F, -1, 0})}),
              ElementsAre(1 + 10, 3 + 40));
  // Element (z, y, x) is 4 z + 2 y + x; the tap moves to (0.5, 1, 0.25).
  const Tensor cube = floats({1, 1, 2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_THAT(
      deformed({cube, floats({1, 1, 1, 1, 1}, {1}), floats({1, 3, 1, 1, 1}, {0.5F, 1, 0.25F})},
               attributes_of({{"strides", list({2, 2, 2})}})),
      ElementsAre(4.25F));
}

TEST(DeformConv, HasAllFloatingTypes) {
  for (const int64_t type : kOnnxFloatTypes) {
    const std::vector<Tensor> inputs = {cast_onnx(slope_image(), type),
                                        cast_onnx(floats({1, 1, 2, 2}, {1, 2, 3, 4}), type),
                                        cast_onnx(offsets_of({0.5F, 0, 0, 0, 0, 0, 0, 0}), type)};
    EXPECT_THAT(as_floats(run_op("DeformConv", 22, one_output(), inputs)[0]),
                ElementsAre(1.5F + 2 + 9 + 16));
  }
}

TEST(DeformConv, InfersSymbols) {
  const Dim height = Dim::symbol("h");
  const auto inferred = infer_op(
      "DeformConv", 19, attributes_of({{"pads", list({1, 1, 1, 1})}}),
      {typed(DataType::Float32, Shape{1, 4, height, 8}),
       typed(DataType::Float32, Shape{6, 4, 3, 3}), typed(DataType::Float32, std::nullopt)});
  EXPECT_EQ(shape_text(inferred), "float32 1x6xhx8");
}

TEST(DeformConv, RefusesWrongModels) {
  const Tensor none = offsets_of(std::vector<float>(8));
  const auto refused = [&](const std::vector<Tensor>& inputs, Attributes attributes) {
    return refusal("DeformConv", 19, std::move(attributes), inputs);
  };
  EXPECT_THAT(refused({slope_image(), kPowers, none}, {}), HasSubstr("expected shape [1x8x2x2]"));
  EXPECT_THAT(refused({slope_image(), kPowers, floats({1, 4, 1, 1}, {0, 0, 0, 0})}, one_output()),
              HasSubstr("expected shape [1x8x1x1]"));
  EXPECT_THAT(
      refused({slope_image(), kPowers, none, Tensor(), floats({1, 1, 1, 1}, {1})}, one_output()),
      HasSubstr("expected shape [1x4x1x1]"));
  EXPECT_THAT(refused({slope_image(), kPowers, none, floats({1, 2})}, one_output()),
              HasSubstr("expected shape [1]"));
  Attributes attributes = one_output();
  attributes.set("offset_group", int64_t{2});
  EXPECT_THAT(refused({slope_image(), kPowers, none}, attributes), HasSubstr("2 equal groups"));
  attributes.set("offset_group", int64_t{0});
  EXPECT_THAT(refused({slope_image(), kPowers, none}, attributes), HasSubstr("found 0"));
  EXPECT_THAT(
      refused({slope_image(), floats({1, 2, 2, 2}, std::vector<float>(8)), none}, one_output()),
      HasSubstr("weights over 1 / 1 channels"));
}

}  // namespace
}  // namespace tessera::ops
