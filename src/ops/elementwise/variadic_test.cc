#include <limits>

#include "ops/op_test.h"

namespace tessera::ops {
namespace {

struct VariadicCase {
  const char* op;
  std::vector<float> expected;  // for {1, NaN, 5, -2}, {2, 1, NaN, 4} and the scalar 3
};

const VariadicCase kVariadicCases[] = {
    {"Max", {3, kNan, kNan, 4}},
    {"Min", {1, kNan, kNan, -2}},
    {"Sum", {6, kNan, kNan, 5}},
    {"Mean", {2, kNan, kNan, 1.66666663F}},
};

TEST(Variadic, InputsAreStretchedAndNanWins) {
  for (const VariadicCase& test : kVariadicCases) {
    const Tensor output = run_op(
        test.op, 13, {},
        {floats({2, 2}, {1, kNan, 5, -2}), floats({2, 2}, {2, 1, kNan, 4}), floats({}, {3})})[0];
    EXPECT_THAT(values(output), Pointwise(testing::NanSensitiveFloatEq(), test.expected))
        << test.op;
    EXPECT_THAT(values(run_op(test.op, 6, {}, {floats({1}, {7})})[0]), ElementsAre(7));
  }
}

TEST(Variadic, VersionsBefore8DoNotBroadcast) {
  EXPECT_EQ(error_of([] { run_op("Sum", 6, {}, {floats({2}, {1, 2}), floats({1}, {1})}); }),
            "InvalidModel: node 'node' (Sum), input 1: expected shape 2 as the inputs before have, "
            "found 1");
  const Dim n = Dim::symbol("N");
  const auto outputs = infer_op(
      "Max", 7, {}, {typed(DataType::Float32, Shape{n, 3}), typed(DataType::Float32, Shape{4, n})});
  EXPECT_EQ(outputs[0].type, Type::tensor(DataType::Float32, Shape{4, 3}));
}

TEST(Variadic, IntegersAreExact) {
  const Tensor left = ints({2}, {9007199254740993, -1});
  const Tensor right = ints({2}, {9007199254740992, 1});
  EXPECT_THAT(integers(run_op("Max", 12, {}, {left, right})[0]), ElementsAre(9007199254740993, 1));
  EXPECT_THAT(integers(run_op("Min", 12, {}, {left, right})[0]), ElementsAre(9007199254740992, -1));
  const std::vector<uint64_t> large = {std::numeric_limits<uint64_t>::max()};
  const std::vector<uint64_t> small = {1};
  const Tensor output = run_op("Max", 12, {},
                               {Tensor::from<uint64_t>(DataType::UInt64, {1}, small),
                                Tensor::from<uint64_t>(DataType::UInt64, {1}, large)})[0];
  EXPECT_EQ(output.as<uint64_t>()[0], large[0]);
}

TEST(Variadic, NoInputIsLeftOut) {
  EXPECT_EQ(error_of([] { run_op("Sum", 13, {}, {floats({1}, {1}), {}, floats({1}, {1})}); }),
            "InvalidModel: node 'node' (Sum), input 1: one of several equal inputs cannot be left "
            "out");
}

TEST(Variadic, CarriesElementsOfMaxAndMin) {
  const Dim n = Dim::symbol("N");
  const InferInput left = with_elements({2}, {n, 3});
  const InferInput right = with_elements({1}, {1});
  EXPECT_THAT(*infer_op("Max", 13, {}, {left, right})[0].elements,
              ElementsAre(expression("max", {1, n}), Dim(3)));
  EXPECT_THAT(*infer_op("Min", 13, {}, {left, right})[0].elements,
              ElementsAre(expression("min", {1, n}), Dim(1)));
}

}  // namespace
}  // namespace tessera::ops
