#include "ops/float_types_test.h"

namespace tessera::ops {
namespace {

Tensor small_ints(std::vector<int32_t> numbers) {
  return Tensor::from<int32_t>(DataType::Int32, {static_cast<int64_t>(numbers.size())}, numbers);
}

const Tensor kCropped = floats({1, 1, 3, 3}, {0, 1, 2, 10, 11, 12, 20, 21, 22});

std::vector<float> cropped_region(const std::vector<float>& region, std::vector<int32_t> size,
                                  Attributes attributes = {}) {
  return values(run_microsoft_op(
      "CropAndResize", std::move(attributes),
      {kCropped, floats({1, 4}, region), small_ints({0}), small_ints(std::move(size))}));
}

TEST(CropAndResize, InterpolatesFractionsOfTheImage) {
  EXPECT_THAT(cropped_region({0, 0, 1, 1}, {2, 2}), ElementsAre(0, 2, 20, 22));
  EXPECT_THAT(cropped_region({0, 0, 0.5F, 0.5F}, {3, 3}),
              ElementsAre(0, 0.5F, 1, 5, 5.5F, 6, 10, 10.5F, 11));
  // One row lies in the middle.
  EXPECT_THAT(cropped_region({0, 0, 0.5F, 1}, {1, 2}), ElementsAre(5, 7));
  // Turned over.
  EXPECT_THAT(cropped_region({1, 1, 0, 0}, {2, 2}), ElementsAre(22, 20, 2, 0));
}

TEST(CropAndResize, TakesTheNearestElement) {
  const Attributes nearest = attributes_of({{"mode", "nearest"}});
  // Positions 0, 0.4 and 0.8 of each axis.
  EXPECT_THAT(cropped_region({0, 0, 0.4F, 0.4F}, {3, 3}, nearest),
              ElementsAre(0, 0, 1, 0, 0, 1, 10, 10, 11));
}

TEST(CropAndResize, ExtrapolatesOutside) {
  const Attributes seven = attributes_of({{"extrapolation_value", 7.0F}});
  EXPECT_THAT(cropped_region({0, -0.5F, 0, 1}, {1, 4}, seven), ElementsAre(7, 0, 1, 2));
  EXPECT_THAT(cropped_region({0, 0, kNan, kInfinity}, {2, 2}, seven), ElementsAre(7, 7, 7, 7));
}

TEST(CropAndResize, HasAllFloatingTypes) {
  for (const int64_t type : kOnnxFloatTypes) {
    const Tensor found =
        run_microsoft_op("CropAndResize", {},
                         {cast_onnx(kCropped, type), cast_onnx(floats({1, 4}, {0, 0, 1, 1}), type),
                          small_ints({0}), small_ints({2, 2})});
    EXPECT_THAT(as_floats(found), ElementsAre(0, 2, 20, 22));
  }
}

TEST(CropAndResize, RefusesWrongModels) {
  const auto refused = [](const Attributes& attributes, std::vector<int32_t> images,
                          std::vector<int32_t> size) {
    const auto error = thrown_by([&] {
      run_microsoft_op("CropAndResize", attributes,
                       {kCropped, floats({1, 4}, {0, 0, 1, 1}), small_ints(std::move(images)),
                        small_ints(std::move(size))});
    });
    return error ? error->message() : "";
  };
  EXPECT_THAT(refused(attributes_of({{"mode", "cubic"}}), {0}, {1, 1}), HasSubstr("'bilinear'"));
  EXPECT_THAT(refused({}, {0}, {1}), HasSubstr("a height and a width, found 1 number"));
  EXPECT_THAT(refused({}, {0}, {1, 0}), HasSubstr("sizes of at least 1, found 1x0"));
  EXPECT_THAT(refused({}, {1}, {1, 1}), HasSubstr("in [0, 1), found 1"));
  EXPECT_THAT(refused({}, {0, 0}, {1, 1}), HasSubstr("of 1 regions"));
}

}  // namespace
}  // namespace tessera::ops
