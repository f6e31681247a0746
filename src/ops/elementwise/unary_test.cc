#include "ops/elementwise/unary.h"

#include <limits>

#include "base/tensor/float16.h"
#include "ops/op_test.h"

namespace tessera::ops {
namespace {

struct UnaryCase {
  const char* op;
  int opset;
  std::vector<float> input;
  std::vector<float> expected;  // from numpy, in float64 and rounded
};

const UnaryCase kUnaryCases[] = {
    {"Abs", 13, {-1.5F, 0, 2, kNan}, {1.5F, 0, 2, kNan}},
    {"Acos", 7, {-1, 0, 0.5F, 2}, {3.14159274F, 1.57079637F, 1.04719758F, kNan}},
    {"Acosh", 9, {1, 2, 10}, {0, 1.31695795F, 2.99322295F}},
    {"Asin", 7, {-1, 0, 0.5F}, {-1.57079637F, 0, 0.52359879F}},
    {"Asinh", 9, {-1, 0, 2}, {-0.881373584F, 0, 1.44363546F}},
    {"Atan", 7, {-1, 0, 2}, {-0.785398185F, 0, 1.10714877F}},
    {"Atanh", 9, {-0.5F, 0, 0.9F, 1}, {-0.549306154F, 0, 1.47221935F, kInfinity}},
    {"Ceil", 6, {-1.5F, 1.2F, 2}, {-1, 2, 2}},
    {"Cos", 7, {0, 1, -2}, {1, 0.540302277F, -0.416146845F}},
    {"Cosh", 9, {0, 1, -2}, {1, 1.54308069F, 3.76219559F}},
    {"Erf", 13, {-1, 0, 0.5F, 4}, {-0.842700779F, 0, 0.520499885F, 1}},
    {"Exp", 6, {-1, 0, 1, 100}, {0.367879450F, 1, 2.71828175F, kInfinity}},
    {"Floor", 6, {-1.5F, 1.2F, 2}, {-2, 1, 2}},
    {"Log", 6, {1, 10, 0, -1}, {0, 2.30258512F, -kInfinity, kNan}},
    {"Neg", 6, {-1.5F, 2}, {1.5F, -2}},
    {"Reciprocal", 6, {-4, 3, 0}, {-0.25F, 0.333333343F, kInfinity}},
    {"Round", 11, {0.5F, 1.5F, 2.5F, -0.5F, -1.7F}, {0, 2, 2, 0, -2}},
    {"Sign", 9, {-3, 0, 7, kNan}, {-1, 0, 1, kNan}},
    {"Sin", 7, {0, 1, -2}, {0, 0.841470957F, -0.909297407F}},
    {"Sinh", 9, {0, 1, -2}, {0, 1.17520118F, -3.62686038F}},
    {"Sqrt", 6, {0, 2, 9, -1}, {0, 1.41421354F, 3, kNan}},
    {"Tan", 7, {0, 1, -2}, {0, 1.55740774F, 2.18503976F}},
};

TEST(Unary, Floats) {
  for (const UnaryCase& test : kUnaryCases) {
    const auto count = static_cast<int64_t>(test.input.size());
    const Tensor output = run_op(test.op, test.opset, {}, {floats({count}, test.input)})[0];
    EXPECT_THAT(values(output), Pointwise(testing::NanSensitiveFloatEq(), test.expected))
        << test.op;
  }
}

TEST(Unary, ManyElementsAreSplitIntoBlocks) {
  const int64_t count = 3 * kElementGrain + 7;
  std::vector<float> input;
  for (int64_t index = 0; index < count; ++index) input.push_back(static_cast<float>(index));
  const std::vector<float> output = values(run_op("Neg", 13, {}, {floats({count}, input)})[0]);
  for (size_t index = 0; index < output.size(); ++index) ASSERT_EQ(output[index], -input[index]);
}

TEST(Unary, SixteenBitFloatsAreRounded) {
  const std::vector<Float16> halves = {Float16(2.0F), Float16(-1.0F)};
  const Tensor input = Tensor::from<Float16>(DataType::Float16, {2}, halves);
  const Tensor output = run_op("Exp", 13, {}, {input})[0];
  EXPECT_EQ(static_cast<float>(output.as<Float16>()[0]), 7.390625F);
  EXPECT_EQ(static_cast<float>(output.as<Float16>()[1]), 0.367919921875F);
}

TEST(Unary, IntegersWrapAround) {
  const int64_t smallest = std::numeric_limits<int64_t>::min();
  const Tensor input = ints({3}, {smallest, -5, 9007199254740993});
  EXPECT_THAT(integers(run_op("Neg", 13, {}, {input})[0]),
              ElementsAre(smallest, 5, -9007199254740993));
  EXPECT_THAT(integers(run_op("Abs", 13, {}, {input})[0]),
              ElementsAre(smallest, 5, 9007199254740993));
  EXPECT_THAT(integers(run_op("Sign", 13, {}, {input})[0]), ElementsAre(-1, -1, 1));
  EXPECT_THAT(integers(run_op("BitwiseNot", 18, {}, {input})[0]),
              ElementsAre(std::numeric_limits<int64_t>::max(), 4, -9007199254740994));
}

TEST(Unary, BytesOtherThanOneAreTrue) {
  EXPECT_THAT(bytes(run_op("Not", 6, {}, {bools({3}, {0, 1, 2})})[0]), ElementsAre(1, 0, 0));
}

TEST(Unary, Questions) {
  const Tensor input = floats({4}, {kNan, kInfinity, -kInfinity, 1});
  EXPECT_THAT(bytes(run_op("IsNaN", 13, {}, {input})[0]), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(bytes(run_op("IsInf", 10, {}, {input})[0]), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(bytes(run_op("IsInf", 10, attributes_of({{"detect_negative", 0}}), {input})[0]),
              ElementsAre(0, 1, 0, 0));
}

TEST(Unary, ShapesOfUnknownRankStayUnknown) {
  EXPECT_EQ(infer_op("Exp", 13, {}, {typed(DataType::Float32, std::nullopt)})[0].type,
            Type::tensor(DataType::Float32));
}

TEST(Unary, CarriesElements) {
  const Dim batch = Dim::symbol("batch");
  const InferInput input = with_elements({3}, {-3, batch, 4});
  EXPECT_THAT(*infer_op("Neg", 13, {}, {input})[0].elements,
              ElementsAre(Dim(3), subtract(0, batch), Dim(-4)));
  EXPECT_THAT(*infer_op("Abs", 13, {}, {input})[0].elements, ElementsAre(Dim(3), batch, Dim(4)));
  EXPECT_EQ(infer_op("Sign", 13, {}, {input})[0].elements, std::nullopt);
}

}  // namespace
}  // namespace tessera::ops
