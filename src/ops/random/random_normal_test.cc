#include <algorithm>
#include <cmath>

#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

constexpr int64_t kDrawn = 40000;

struct DrawnMoments {
  double mean = 0;
  double deviation = 0;
};

DrawnMoments drawn_moments(const std::vector<float>& numbers) {
  DrawnMoments moments;
  for (const float number : numbers) moments.mean += number / static_cast<double>(numbers.size());
  double squares = 0;
  for (const float number : numbers) squares += std::pow(number - moments.mean, 2);
  moments.deviation = std::sqrt(squares / static_cast<double>(numbers.size()));
  return moments;
}

Attributes of_drawn_shape(std::initializer_list<NamedAttribute> given) {
  Attributes attributes = attributes_of(given);
  attributes.set("shape", std::vector<int64_t>{kDrawn / 4, 4});
  return attributes;
}

// Bounds of 5 standard errors; the seed makes the numbers the same each time.
TEST(RandomNormal, HasMeanAndDeviation) {
  const Attributes given = of_drawn_shape({{"seed", 3.0F}, {"mean", 2.0F}, {"scale", 0.5F}});
  const std::vector<float> numbers = values(run_op("RandomNormal", 22, given, {})[0]);
  const DrawnMoments moments = drawn_moments(numbers);
  EXPECT_NEAR(moments.mean, 2, 0.0125);
  EXPECT_NEAR(moments.deviation, 0.5, 0.009);
  // 4.55 % lie beyond two deviations.
  const auto far = std::count_if(numbers.begin(), numbers.end(),
                                 [](float number) { return std::abs(number - 2) > 1; });
  EXPECT_NEAR(static_cast<double>(far) / kDrawn, 0.0455, 0.0052);
}

TEST(RandomUniform, FillsTheRangeEvenly) {
  const Attributes given = of_drawn_shape({{"seed", 3.0F}, {"low", -1.0F}, {"high", 3.0F}});
  const std::vector<float> numbers = values(run_op("RandomUniform", 22, given, {})[0]);
  EXPECT_THAT(numbers, testing::Each(AllOf(testing::Ge(-1.0F), testing::Le(3.0F))));
  const DrawnMoments moments = drawn_moments(numbers);
  EXPECT_NEAR(moments.mean, 1, 0.029);
  EXPECT_NEAR(moments.deviation, 4 / std::sqrt(12), 0.02);
}

TEST(RandomNumbers, DependOnTheSeedAlone) {
  for (const char* op : {"RandomNormal", "RandomUniform"}) {
    const auto draw = [&](std::initializer_list<NamedAttribute> given) {
      return values(run_op(op, 22, of_drawn_shape(given), {})[0]);
    };
    EXPECT_EQ(draw({{"seed", 1.0F}}), draw({{"seed", 1.0F}}));
    EXPECT_NE(draw({{"seed", 1.0F}}), draw({{"seed", 2.0F}}));
    EXPECT_NE(draw({}), draw({})) << "without a seed, each run draws others";
  }
}

TEST(RandomNumbers, HaveTypeAndShapeOfAttributesOrInput) {
  const Tensor input = ints({2, 3}, {1, 2, 3, 4, 5, 6});
  for (const char* op : {"RandomNormalLike", "RandomUniformLike"}) {
    const Tensor made = run_op(op, 22, attributes_of({{"dtype", 11}}), {input})[0];
    EXPECT_EQ(made.type(), DataType::Float64);
    EXPECT_EQ(made.dims(), input.dims());
    const Tensor like = run_op(op, 1, {}, {floats({0, 3}, {})})[0];
    EXPECT_EQ(like.type(), DataType::Float32);
    EXPECT_EQ(like.dims(), (std::vector<int64_t>{0, 3}));
    EXPECT_THAT(refusal(op, 22, {}, {input}), HasSubstr("no attribute 'dtype', found int64"));
    EXPECT_THAT(refusal(op, 22, attributes_of({{"dtype", 7}}), {input}),
                HasSubstr("attribute 'dtype': expected the number of float16"));
    const auto open = infer_op(op, 22, {}, {typed(DataType::Float16, std::nullopt)});
    EXPECT_EQ(open[0].type.element, DataType::Float16);
  }
  Attributes scalar = attributes_of({{"dtype", 16}});
  scalar.set("shape", std::vector<int64_t>{});
  EXPECT_EQ(run_op("RandomNormal", 22, scalar, {})[0].type(), DataType::BFloat16);
}

TEST(RandomNumbers, RefuseWrongAttributes) {
  Attributes negative;
  negative.set("shape", std::vector<int64_t>{2, -1});
  EXPECT_THAT(refusal("RandomNormal", 22, negative, {}), HasSubstr("at least 0, found -1"));
  EXPECT_THAT(refusal("RandomUniform", 22, of_drawn_shape({{"low", 2.0F}}), {}),
              HasSubstr("'low' of at most 'high'"));
}

}  // namespace
}  // namespace tessera::ops
