#include <cmath>

#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

std::vector<float> counted(int64_t count) {
  std::vector<float> numbers;
  for (int64_t number = 1; number <= count; ++number) {
    numbers.push_back(static_cast<float>(number));
  }
  return numbers;
}

Attributes mode(const char* name, const char* coordinates = "half_pixel") {
  return attributes_of({{"mode", name}, {"coordinate_transformation_mode", coordinates}});
}

struct ResizeCase {
  const char* name;
  Attributes given;
  int64_t side;  // the input is [side, side], counting from 1
  std::vector<float> scales;
  std::vector<int64_t> sizes;
  std::vector<float> roi;
  std::vector<float> expected;
};

Attributes with(Attributes given, const char* name, Attribute value) {
  given.set(name, std::move(value));
  return given;
}

// The expected values are from ONNX's own backend tests.
std::vector<ResizeCase> cases() {
  return {
      {"linear, half pixel",
       mode("linear"),
       2,
       {2, 2},
       {},
       {},
       {1, 1.25F, 1.75F, 2, 1.5F, 1.75F, 2.25F, 2.5F, 2.5F, 2.75F, 3.25F, 3.5F, 3, 3.25F, 3.75F,
        4}},
      {"linear, corners",
       mode("linear", "align_corners"),
       2,
       {2, 2},
       {},
       {},
       {1, 1.333333F, 1.666667F, 2, 1.666667F, 2, 2.333333F, 2.666667F, 2.333333F, 2.666667F, 3,
        3.333333F, 3, 3.333333F, 3.666667F, 4}},
      {"cubic",
       mode("cubic"),
       4,
       {0.8F, 0.8F},
       {},
       {},
       {1.47119141F, 2.78125F, 4.08251953F, 6.71142578F, 8.02148438F, 9.32275391F, 11.91650391F,
        13.2265625F, 14.52783203F}},
      {"linear, antialias",
       with(mode("linear"), "antialias", int64_t{1}),
       4,
       {0.6F, 0.6F},
       {},
       {},
       {2.875F, 4.5F, 9.375F, 11.0F}},
      {"crop",
       mode("linear", "tf_crop_and_resize"),
       4,
       {},
       {3, 3},
       {0.4F, 0.6F, 0.6F, 0.8F},
       {7.6F, 7.9F, 8.2F, 8.8F, 9.1F, 9.4F, 10, 10.3F, 10.6F}},
      {"crop beyond the edge",
       with(mode("linear", "tf_crop_and_resize"), "extrapolation_value", 10.0F),
       4,
       {},
       {3, 3},
       {0.4F, 0.6F, 1.2F, 1.7F},
       {7.6F, 10, 10, 12.4F, 10, 10, 10, 10, 10}},
      {"nearest, floor",
       with(mode("nearest", "align_corners"), "nearest_mode", std::string("floor")),
       2,
       {},
       {3, 3},
       {},
       {1, 1, 2, 1, 1, 2, 3, 3, 4}},
      {"nearest, not larger",
       with(mode("nearest"), "keep_aspect_ratio_policy", std::string("not_larger")),
       2,
       {},
       {3, 7},
       {},
       {1, 1, 2, 1, 1, 2, 3, 3, 4}},
  };
}

TEST(Resize, ValuesOfEveryMode) {
  for (const ResizeCase& item : cases()) {
    const Tensor input = floats({item.side, item.side}, counted(item.side * item.side));
    const Tensor roi = item.roi.empty() ? Tensor() : floats({4}, item.roi);
    const Tensor scales = item.scales.empty() ? Tensor() : floats({2}, item.scales);
    const Tensor sizes = item.sizes.empty() ? Tensor() : ints(item.sizes);
    const auto outputs = run_op("Resize", 19, item.given, {input, roi, scales, sizes});
    EXPECT_THAT(values(outputs[0]), Pointwise(FloatNear(1e-5F), item.expected)) << item.name;
  }
}

TEST(Resize, Version10RoundsUpWhereItShrinks) {
  const auto outputs =
      run_op("Resize", 10, {}, {floats({1, 4}, {1, 2, 3, 4}), floats({2}, {1, 0.6F})});
  EXPECT_THAT(values(outputs[0]), ElementsAre(1, 3));
}

TEST(Resize, Version11SpellsOmittedAsEmpty) {
  const auto outputs =
      run_op("Resize", 11, {}, {floats({1}, {5}), floats({0}, {}), floats({0}, {}), ints({2})});
  EXPECT_THAT(values(outputs[0]), ElementsAre(5, 5));
}

TEST(Resize, IntegersStayInTheirRange) {
  const std::vector<uint8_t> numbers = {255, 255, 0, 0};
  const auto outputs =
      run_op("Resize", 13, mode("cubic"),
             {Tensor::from<uint8_t>(DataType::UInt8, {4}, numbers), Tensor(), floats({1}, {2})});
  // Cubic interpolation overshoots on both sides of the step.
  EXPECT_EQ(outputs[0].as<uint8_t>()[2], 255);
  EXPECT_EQ(outputs[0].as<uint8_t>()[5], 0);
}

TEST(Resize, ScalesSymbols) {
  const Dim n = Dim::symbol("n");
  const Tensor scales = floats({3}, {1, 2, 0.5F});
  const auto outputs = infer_op(
      "Resize", 13, {}, {typed(DataType::Float32, Shape{n, n, n}), InferInput(), known(scales)});
  EXPECT_EQ(*outputs[0].type.shape, (Shape{n, multiply(n, 2), floor_divide(n, 2)}));
  const auto sized = infer_op(
      "Resize", 13, {},
      {typed(DataType::Float32, Shape{1, 7}), InferInput(), InferInput(), followed({1, n})});
  EXPECT_EQ(*sized[0].type.shape, (Shape{1, n}));
}

TEST(Resize, RefusesContradictions) {
  const Tensor input = floats({2}, {1, 2});
  const Tensor none;
  const auto message = [&](const Tensor& scales, const Tensor& sizes, Attributes given = {}) {
    return refusal("Resize", 19, std::move(given), {input, none, scales, sizes});
  };
  EXPECT_THAT(message(none, none), HasSubstr("found neither"));
  EXPECT_THAT(message(floats({1}, {1}), ints({1})), HasSubstr("found both"));
  EXPECT_THAT(message(floats({1}, {0}), none), HasSubstr("greater than 0"));
  EXPECT_THAT(message(floats({1}, {NAN}), none), HasSubstr("greater than 0"));
  EXPECT_THAT(message(floats({1}, {3e38F}), none), HasSubstr("fits 64 bits"));
  EXPECT_THAT(message(floats({2}, {1, 1}), none), HasSubstr("expected 1 elements, found 2"));
  EXPECT_THAT(message(none, ints({-1})), HasSubstr("found -1"));
  EXPECT_THAT(message(floats({1}, {1}), none, mode("area")), HasSubstr("found 'area'"));
  EXPECT_THAT(message(floats({1}, {1}), none, mode("linear", "tf_crop_and_resize")),
              HasSubstr("requires it"));
  EXPECT_THAT(message(floats({1}, {1}), none, mode("nearest", "tf_half_pixel_for_nn")),
              HasSubstr("of version 19"));
}

}  // namespace
}  // namespace tessera::ops
