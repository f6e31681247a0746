#include "base/tensor/float16.h"
#include "ops/op_test.h"

namespace tessera::ops {
namespace {

Attributes ints_of(const std::map<std::string, int64_t>& numbers) {
  Attributes attributes;
  for (const auto& [name, number] : numbers) attributes.set(name, number);
  return attributes;
}

struct FloatCase {
  const char* op;
  std::map<std::string, int64_t> attributes;
  std::vector<float> expected;  // for {7, -7.5, NaN, 0} and {2, 2, 1, 0}
};

const FloatCase kFloatCases[] = {
    {"Add", {}, {9, -5.5F, kNan, 0}},   {"Sub", {}, {5, -9.5F, kNan, 0}},
    {"Mul", {}, {14, -15, kNan, 0}},    {"Div", {}, {3.5F, -3.75F, kNan, kNan}},
    {"Pow", {}, {49, 56.25F, kNan, 1}}, {"Mod", {{"fmod", 1}}, {1, -1.5F, kNan, kNan}},
    {"Mod", {}, {1, 0.5F, kNan, kNan}},
};

TEST(Binary, Floats) {
  for (const FloatCase& test : kFloatCases) {
    const Tensor output = run_op(test.op, 28, ints_of(test.attributes),
                                 {floats({4}, {7, -7.5F, kNan, 0}), floats({4}, {2, 2, 1, 0})})[0];
    EXPECT_THAT(values(output), Pointwise(testing::NanSensitiveFloatEq(), test.expected))
        << test.op;
  }
}

struct IntegerCase {
  const char* op;
  std::map<std::string, int64_t> attributes;
  std::vector<int64_t> left;
  std::vector<int64_t> right;
  std::vector<int64_t> expected;
};

const IntegerCase kIntegerCases[] = {
    {"Add", {}, {kLargest, 2}, {1, 3}, {kSmallest, 5}},
    {"Sub", {}, {kSmallest, 2}, {1, 3}, {kLargest, -1}},
    {"Mul", {}, {kLargest, -2}, {2, 3}, {-2, -6}},
    {"Div", {}, {-7, 7, kSmallest, kSmallest}, {2, -2, -1, 1}, {-3, -3, kSmallest, kSmallest}},
    {"Mod", {}, {-7, 7, -7, kSmallest}, {3, -3, -3, -1}, {2, -2, -1, 0}},
    {"Mod", {{"fmod", 1}}, {-7, 7, -7, kSmallest}, {3, -3, -3, -1}, {-1, 1, -1, 0}},
    {"Pow",
     {},
     {2, -2, 0, 3, 1, -1, 0},
     {62, 3, -1, 40, -5, -3, 0},
     {4611686018427387904, -8, kLargest, -6289078614652622815, 1, -1, 1}},
    {"BitwiseAnd", {}, {12, -1}, {10, 5}, {8, 5}},
    {"BitwiseOr", {}, {12, -1}, {10, 5}, {14, -1}},
    {"BitwiseXor", {}, {12, -1}, {10, 5}, {6, -6}},
};

TEST(Binary, IntegersWrapAroundAndTruncate) {
  for (const IntegerCase& test : kIntegerCases) {
    const auto count = static_cast<int64_t>(test.left.size());
    const Tensor output = run_op(test.op, 28, ints_of(test.attributes),
                                 {ints({count}, test.left), ints({count}, test.right)})[0];
    EXPECT_EQ(integers(output), test.expected) << test.op;
  }
}

TEST(Binary, SmallUnsignedIntegersWrapAround) {
  const std::vector<uint16_t> largest = {65535};
  const Tensor input = Tensor::from<uint16_t>(DataType::UInt16, {1}, largest);
  EXPECT_EQ(run_op("Mul", 14, {}, {input, input})[0].as<uint16_t>()[0], 1);
}

TEST(Binary, IntegerDivisionByZeroFails) {
  for (const char* op : {"Div", "Mod"}) {
    EXPECT_THAT(error_of([&] { run_op(op, 14, {}, {ints({1}, {1}), ints({1}, {0})}); }),
                AllOf(StartsWith("InvalidArgument: node 'node'"), HasSubstr("found 0")));
  }
}

struct QuestionCase {
  const char* op;
  std::vector<uint8_t> expected;  // for {1, 2, 3, NaN} and {2, 2, 2, 2}
};

const QuestionCase kQuestionCases[] = {
    {"Equal", {0, 1, 0, 0}},   {"Less", {1, 0, 0, 0}},           {"LessOrEqual", {1, 1, 0, 0}},
    {"Greater", {0, 0, 1, 0}}, {"GreaterOrEqual", {0, 1, 1, 0}},
};

TEST(Binary, Questions) {
  for (const QuestionCase& test : kQuestionCases) {
    const Tensor left = floats({4}, {1, 2, 3, kNan});
    EXPECT_EQ(bytes(run_op(test.op, 16, {}, {left, floats({}, {2})})[0]), test.expected) << test.op;
  }
}

TEST(Binary, TruthOfBytesOtherThanOne) {
  const Tensor left = bools({4}, {0, 0, 1, 2});
  const Tensor right = bools({4}, {0, 1, 1, 1});
  const auto run = [&](const char* op) { return bytes(run_op(op, 13, {}, {left, right})[0]); };
  EXPECT_THAT(run("And"), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(run("Or"), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(run("Xor"), ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(run("Equal"), ElementsAre(1, 0, 1, 1));
}

TEST(Binary, ShiftsBeyondTheBitsLeaveTheSign) {
  Attributes left = attributes_of({{"direction", "LEFT"}});
  const Attributes right = attributes_of({{"direction", "RIGHT"}});
  const Tensor input = ints({4}, {-8, 8, -8, 8});
  const Tensor counts = ints({4}, {1, 2, 64, -1});
  EXPECT_THAT(integers(run_op("BitShift", 28, right, {input, counts})[0]),
              ElementsAre(-4, 2, -1, 0));
  EXPECT_THAT(integers(run_op("BitShift", 28, left, {input, counts})[0]),
              ElementsAre(-16, 32, 0, 0));
  left.set("direction", std::string("UP"));
  EXPECT_THAT(error_of([&] { run_op("BitShift", 28, left, {input, counts}); }),
              HasSubstr("expected 'LEFT' or 'RIGHT', found 'UP'"));
}

TEST(Binary, BothOperandsAreStretched) {
  const Tensor output = run_op("Sub", 7, {}, {floats({2, 1}, {10, 20}), floats({3}, {1, 2, 3})})[0];
  EXPECT_EQ(output.dims(), (std::vector<int64_t>{2, 3}));
  EXPECT_THAT(values(output), ElementsAre(9, 8, 7, 19, 18, 17));
}

TEST(Binary, SixteenBitFloatsAreStretchedToo) {
  const std::vector<BFloat16> numbers = {BFloat16(1.0F), BFloat16(2.0F), BFloat16(4.0F)};
  const Tensor row = Tensor::from<BFloat16>(DataType::BFloat16, {1, 3}, numbers);
  const Tensor column = Tensor::from<BFloat16>(DataType::BFloat16, {3, 1}, numbers);
  const Tensor output = run_op("Div", 13, {}, {row, column})[0];
  std::vector<float> quotients;
  for (const BFloat16 element : output.as<BFloat16>()) quotients.push_back(float(element));
  EXPECT_THAT(quotients, ElementsAre(1, 2, 4, 0.5F, 1, 2, 0.25F, 0.5F, 1));
}

TEST(Binary, ThePowerMayBeOfAnotherType) {
  EXPECT_THAT(values(run_op("Pow", 15, {}, {floats({2}, {2, -2}), ints({2}, {3, 2})})[0]),
              ElementsAre(8, 4));
  EXPECT_THAT(integers(run_op("Pow", 15, {}, {ints({2}, {2, -2}), floats({2}, {0.5F, 2})})[0]),
              ElementsAre(1, 4));
  EXPECT_THAT(values(run_op("Pow", 15, {}, {floats({1}, {0}), floats({1}, {-1})})[0]),
              ElementsAre(kInfinity));
}

TEST(Binary, OldFormAlignsTheRightOperandAtAxis) {
  const Tensor left = floats({2, 2, 2}, {0, 0, 0, 0, 0, 0, 0, 0});
  const Tensor right = floats({2}, {1, 2});
  const auto run = [&](std::map<std::string, int64_t> attributes) {
    return values(run_op("Add", 6, ints_of(attributes), {left, right})[0]);
  };
  EXPECT_THAT(run({{"broadcast", 1}}), ElementsAre(1, 2, 1, 2, 1, 2, 1, 2));
  EXPECT_THAT(run({{"broadcast", 1}, {"axis", 1}}), ElementsAre(1, 1, 2, 2, 1, 1, 2, 2));
  EXPECT_THAT(run({{"broadcast", 1}, {"axis", 0}}), ElementsAre(1, 1, 1, 1, 2, 2, 2, 2));
  EXPECT_EQ(error_of([&] { run({}); }),
            "InvalidModel: node 'node' (Add), input 'B': expected shape 2x2x2 (attribute "
            "'broadcast' is 0), found 2");
  EXPECT_EQ(error_of([&] { run({{"broadcast", 1}, {"axis", 3}}); }),
            "InvalidModel: node 'node' (Add), input 'B': expected a shape that broadcasts to 2x2x2 "
            "from axis 3, found 2");
}

TEST(Binary, OldFormNeedsNoAxisWhereNothingIsStretched) {
  const Tensor pair = floats({2}, {1, 2});
  EXPECT_THAT(values(run_op("Add", 6, ints_of({{"axis", -7}}), {pair, pair})[0]),
              ElementsAre(2, 4));
}

TEST(Binary, OldFormNeverStretchesTheLeftOperand) {
  EXPECT_THAT(error_of([&] {
                run_op("Mul", 6, ints_of({{"broadcast", 1}}),
                       {floats({1}, {1}), floats({2}, {1, 2})});
              }),
              HasSubstr("expected a shape that broadcasts to 1 from axis (last), found 2"));
}

TEST(Binary, ContradictionsNameBothShapes) {
  EXPECT_EQ(
      error_of([] {
        infer_op("Add", 13, {},
                 {typed(DataType::Float32, Shape{2, 3}), typed(DataType::Float32, Shape{2})});
      }),
      "InvalidModel: node 'node' (Add), input 'B': expected a shape that broadcasts with 2x3, "
      "found 2");
}

TEST(Binary, FloatsNeedFmodBeforeVersion28) {
  EXPECT_THAT(error_of([] { run_op("Mod", 13, {}, {floats({1}, {1}), floats({1}, {1})}); }),
              HasSubstr("expected 1 for elements of float32, found 0"));
}

TEST(Binary, UnknownRanksStayUnknown) {
  const auto outputs = infer_op(
      "Less", 13, {},
      {typed(DataType::Int64, std::nullopt), typed(DataType::Int64, Shape{Dim::symbol("N")})});
  EXPECT_EQ(outputs[0].type, Type::tensor(DataType::Bool));
}

TEST(Binary, CarriesElementsOfShapes) {
  const Dim n = Dim::symbol("N");
  const InferInput shape = with_elements({3}, {n, 7, -7});
  const auto run = [&](const char* op, Dim right) {
    return infer_op(op, 14, {}, {shape, with_elements({}, {right})})[0].elements;
  };
  EXPECT_THAT(*run("Add", 2), ElementsAre(add(n, 2), Dim(9), Dim(-5)));
  EXPECT_THAT(*run("Sub", 2), ElementsAre(subtract(n, 2), Dim(5), Dim(-9)));
  EXPECT_THAT(*run("Mul", 2), ElementsAre(multiply(n, 2), Dim(14), Dim(-14)));
  EXPECT_THAT(*run("Div", 2), ElementsAre(floor_divide(n, 2), Dim(3), Dim(-3)));
  EXPECT_THAT(*run("Equal", -7), ElementsAre(Dim(0), Dim(0), Dim(1)));
  EXPECT_EQ(run("Less", 2), std::nullopt);
  EXPECT_EQ(run("Div", 0), std::nullopt);
}

}  // namespace
}  // namespace tessera::ops
