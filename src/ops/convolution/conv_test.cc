#include <random>

#include "ops/op_test.h"

namespace tessera::ops {
namespace {

Tensor random_floats(std::mt19937& random, std::vector<int64_t> dims) {
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(element_count(dims)));
  for (float& value : values) value = normal(random);
  return floats(std::move(dims), values);
}

// A two-dimensional case with every attribute that affects which inputs a tap reads.
struct ConvCase {
  int64_t batch, groups, inputs, outputs, height, width, kernel_height, kernel_width;
  int64_t stride_height, stride_width, dilation_height, dilation_width;
  int64_t top, left, bottom, right;
};

Attributes as_attributes(const ConvCase& test) {
  return attributes_of({{"group", test.groups},
                        {"strides", {test.stride_height, test.stride_width}},
                        {"dilations", {test.dilation_height, test.dilation_width}},
                        {"pads", {test.top, test.left, test.bottom, test.right}}});
}

// One output, computed from the definition.
double naive(const ConvCase& test, const Tensor& input, const Tensor& weights, int64_t picture,
             int64_t channel, int64_t row, int64_t column) {
  const int64_t group = channel / test.outputs;
  double sum = 0;
  for (int64_t source = 0; source < test.inputs; ++source) {
    for (int64_t y = 0; y < test.kernel_height; ++y) {
      for (int64_t x = 0; x < test.kernel_width; ++x) {
        const int64_t in_row = row * test.stride_height + y * test.dilation_height - test.top;
        const int64_t in_column = column * test.stride_width + x * test.dilation_width - test.left;
        if (in_row < 0 || in_row >= test.height || in_column < 0 || in_column >= test.width) {
          continue;
        }
        const int64_t in_channel =
            picture * test.groups * test.inputs + group * test.inputs + source;
        const int64_t at = (in_channel * test.height + in_row) * test.width + in_column;
        const int64_t weight =
            ((channel * test.inputs + source) * test.kernel_height + y) * test.kernel_width + x;
        sum += static_cast<double>(input.as<float>()[static_cast<size_t>(at)]) *
               static_cast<double>(weights.as<float>()[static_cast<size_t>(weight)]);
      }
    }
  }
  return sum;
}

void compare(const ConvCase& test, std::mt19937& random) {
  const Tensor input =
      random_floats(random, {test.batch, test.groups * test.inputs, test.height, test.width});
  const Tensor weights = random_floats(
      random, {test.groups * test.outputs, test.inputs, test.kernel_height, test.kernel_width});
  const Tensor bias = random_floats(random, {test.groups * test.outputs});
  const Tensor output = run_op("Conv", 11, as_attributes(test), {input, weights, bias})[0];
  const auto found = output.as<float>();
  size_t at = 0;
  for (int64_t picture = 0; picture < output.dims()[0]; ++picture) {
    for (int64_t channel = 0; channel < output.dims()[1]; ++channel) {
      for (int64_t row = 0; row < output.dims()[2]; ++row) {
        for (int64_t column = 0; column < output.dims()[3]; ++column, ++at) {
          const double expected =
              naive(test, input, weights, picture, channel, row, column) +
              static_cast<double>(bias.as<float>()[static_cast<size_t>(channel)]);
          ASSERT_NEAR(found[at], expected, 1e-5) << dims_text(output.dims()) << " at " << at;
        }
      }
    }
  }
}

TEST(Conv, EqualsTheDefinition) {
  std::mt19937 random(1);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < 60; ++round) {
    ConvCase test = {pick(1, 2), pick(1, 3), pick(1, 4), pick(1, 6), pick(5, 9), pick(5, 9),
                     pick(1, 3), pick(1, 3), pick(1, 3), pick(1, 3), pick(1, 2), pick(1, 2),
                     pick(0, 3), pick(0, 3), pick(0, 3), pick(0, 3)};
    compare(test, random);
  }
}

// Rows, columns and depth are each larger than one block of the matmul.
TEST(Conv, BlocksFitTogether) {
  std::mt19937 random(2);
  compare({1, 1, 40, 67, 17, 19, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1}, random);
  compare({2, 70, 1, 1, 17, 19, 3, 3, 2, 1, 1, 1, 1, 1, 1, 1}, random);
}

TEST(Conv, SamePaddingPutsTheOddOneWhereItSays) {
  const Tensor input = floats({1, 1, 4}, {1, 2, 3, 4});
  const Tensor weights = floats({1, 1, 2}, {1, 10});
  EXPECT_THAT(
      values(run_op("Conv", 11, attributes_of({{"auto_pad", "SAME_UPPER"}}), {input, weights})[0]),
      ElementsAre(21, 32, 43, 4));
  EXPECT_THAT(
      values(run_op("Conv", 11, attributes_of({{"auto_pad", "SAME_LOWER"}}), {input, weights})[0]),
      ElementsAre(10, 21, 32, 43));
}

TEST(Conv, ThreeSpatialAxesWork) {
  const Tensor input = floats({1, 1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor weights = floats({1, 1, 2, 1, 2}, {1, 10, 100, 1000});
  const Tensor output = run_op("Conv", 11, {}, {input, weights})[0];
  EXPECT_EQ(output.dims(), (std::vector<int64_t>{1, 1, 1, 2, 1}));
  EXPECT_THAT(values(output), ElementsAre(6521, 8743));
}

TEST(Conv, EqualWorkOnEqualSymbolsGivesEqualSymbols) {
  const Attributes same = attributes_of({{"pads", {1, 1, 1, 1}}});
  const Shape input = {Dim::symbol("N"), 3, Dim::symbol("H"), 224};
  const auto weights = typed(DataType::Float32, Shape{8, 3, 3, 3});
  const auto kept = infer_op("Conv", 11, same, {typed(DataType::Float32, input), weights});
  EXPECT_EQ(*kept[0].type.shape, (Shape{Dim::symbol("N"), 8, Dim::symbol("H"), 224}));

  Attributes halved = same;
  halved.set("strides", std::vector<int64_t>{2, 2});
  const Attributes automatic = attributes_of({{"strides", {2, 2}}, {"auto_pad", "SAME_UPPER"}});
  const auto first = infer_op("Conv", 11, halved, {typed(DataType::Float32, input), weights});
  const auto second = infer_op("Conv", 11, automatic, {typed(DataType::Float32, input), weights});
  EXPECT_EQ(*first[0].type.shape, *second[0].type.shape);
  EXPECT_EQ((*first[0].type.shape)[3], Dim(112));
}

TEST(Conv, AnUnknownRankGivesAnUnknownShape) {
  const auto outputs = infer_op(
      "Conv", 11, {},
      {typed(DataType::Float32, std::nullopt), typed(DataType::Float32, Shape{8, 3, 3, 3})});
  EXPECT_EQ(outputs[0].type, Type::tensor(DataType::Float32));
}

// An attribute that a damaged file may have, and a part of the error.
struct BadCase {
  const char* attribute;
  Attribute value;
  const char* message;
};

TEST(Conv, HostileAttributesAreRefused) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  const BadCase cases[] = {
      {"group", int64_t{0}, "expected a 'group' of at least 1, found 0"},
      {"group", int64_t{-1}, "expected a 'group' of at least 1, found -1"},
      {"group", kHuge, "groups"},
      {"strides", std::vector<int64_t>{0, 1}, "found 0"},
      {"strides", std::vector<int64_t>{1}, "expected 2 numbers, found 1"},
      {"dilations", std::vector<int64_t>{1, -1}, "found -1"},
      {"dilations", std::vector<int64_t>{1, kHuge}, "found 9223372036854775807"},
      {"dilations", std::vector<int64_t>{2147483647, 1}, "window no larger than the padded input"},
      {"pads", std::vector<int64_t>{0, 0, -1, 0}, "found -1"},
      {"pads", std::vector<int64_t>{kHuge, 0, kHuge, 0}, "found 9223372036854775807"},
      {"kernel_shape", std::vector<int64_t>{5, 5}, "expected weights for a kernel of 5x5"},
      {"auto_pad", "SAME", "found 'SAME'"}};
  for (const BadCase& bad : cases) {
    Attributes attributes;
    attributes.set(bad.attribute, bad.value);
    EXPECT_THAT(error_of(ErrorKind::InvalidModel,
                         [&] {
                           infer_op("Conv", 11, attributes,
                                    {typed(DataType::Float32, Shape{1, 3, 4, 4}),
                                     typed(DataType::Float32, Shape{8, 3, 3, 3})});
                         }),
                HasSubstr(bad.message));
  }
}

}  // namespace
}  // namespace tessera::ops
