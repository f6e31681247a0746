#include <limits>
#include <random>

#include "ops/op_test.h"

namespace tessera::ops {
namespace {

// Compares with the one-dimensional definition, in which every input scatters over its window.
TEST(ConvTranspose, EqualsTheDefinition) {
  std::mt19937 random(1);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  std::normal_distribution<float> normal;
  for (int round = 0; round < 60; ++round) {
    const int64_t groups = pick(1, 3), inputs = pick(1, 3), outputs = pick(1, 4);
    const int64_t length = pick(2, 7), kernel = pick(1, 4), stride = pick(1, 3);
    const int64_t dilation = pick(1, 2), left = pick(0, 1), right = pick(0, 1);
    const int64_t extra = pick(0, stride - 1);
    const int64_t full = stride * (length - 1) + (kernel - 1) * dilation + 1 + extra;
    if (full - left - right < 1) continue;
    std::vector<float> x(static_cast<size_t>(groups * inputs * length));
    std::vector<float> w(static_cast<size_t>(groups * inputs * outputs * kernel));
    for (float& value : x) value = normal(random);
    for (float& value : w) value = normal(random);
    std::vector<double> expected(static_cast<size_t>(groups * outputs * full), 0.0);
    for (int64_t in = 0; in < groups * inputs; ++in) {
      for (int64_t out = 0; out < outputs; ++out) {
        for (int64_t at = 0; at < length * kernel; ++at) {
          const int64_t position = at / kernel * stride + at % kernel * dilation;
          expected[static_cast<size_t>((in / inputs * outputs + out) * full + position)] +=
              static_cast<double>(x[static_cast<size_t>(in * length + at / kernel)]) *
              static_cast<double>(
                  w[static_cast<size_t>((in * outputs + out) * kernel + at % kernel)]);
        }
      }
    }
    const Tensor output = run_op("ConvTranspose", 11,
                                 attributes_of({{"group", groups},
                                                {"strides", {stride}},
                                                {"dilations", {dilation}},
                                                {"pads", {left, right}},
                                                {"output_padding", {extra}}}),
                                 {floats({1, groups * inputs, length}, x),
                                  floats({groups * inputs, outputs, kernel}, w)})[0];
    const int64_t kept = full - left - right;
    ASSERT_EQ(output.dims(), (std::vector<int64_t>{1, groups * outputs, kept}));
    for (int64_t at = 0; at < groups * outputs * kept; ++at) {
      ASSERT_NEAR(output.as<float>()[static_cast<size_t>(at)],
                  expected[static_cast<size_t>(at / kept * full + left + at % kept)], 1e-5);
    }
  }
}

TEST(ConvTranspose, AnInfiniteWeightReachesItsOutputsOnly) {
  const Attributes attributes = attributes_of({{"strides", {2}}});
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor output = run_op(
      "ConvTranspose", 11, attributes,
      {floats({1, 1, 2}, {1, 2}), floats({1, 2, 2}, {3, infinity, 4, 5}), floats({2}, {0, 1})})[0];
  EXPECT_THAT(output.as<float>(), ElementsAre(3, infinity, 6, infinity, 5, 6, 9, 11));
}

// Expected values from ONNX Runtime.
TEST(ConvTranspose, AnOutputShapeCutsTheOddOneAtTheFrontUnlessSameUpper) {
  const Tensor input = floats({1, 1, 2}, {1, 2});
  const Tensor weights = floats({1, 1, 3}, {1, 10, 100});
  Attributes attributes = attributes_of({{"output_shape", {3}}});
  EXPECT_THAT(values(run_op("ConvTranspose", 11, attributes, {input, weights})[0]),
              ElementsAre(12, 120, 200));
  attributes.set("auto_pad", "SAME_UPPER");
  EXPECT_THAT(values(run_op("ConvTranspose", 11, attributes, {input, weights})[0]),
              ElementsAre(1, 12, 120));
}

TEST(ConvTranspose, SymbolsAreMultiplied) {
  const auto outputs =
      infer_op("ConvTranspose", 11, attributes_of({{"strides", {2}}}),
               {typed(DataType::Float32, Shape{Dim::symbol("N"), 4, Dim::symbol("L")}),
                typed(DataType::Float32, Shape{4, 3, 2})});
  EXPECT_EQ(*outputs[0].type.shape, (Shape{Dim::symbol("N"), 3, multiply(Dim::symbol("L"), 2)}));
}

TEST(ConvTranspose, PaddingThatLeavesNothingIsRefused) {
  EXPECT_THROW(infer_op("ConvTranspose", 11, attributes_of({{"pads", {2, 2}}}),
                        {typed(DataType::Float32, Shape{1, 4, 2}),
                         typed(DataType::Float32, Shape{4, 3, 2})}),
               Error);
}

}  // namespace
}  // namespace tessera::ops
