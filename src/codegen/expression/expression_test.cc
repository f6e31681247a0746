#include "codegen/expression/expression.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <set>

#include "codegen/expression/evaluate.h"
#include "codegen/expression/expression_builder.h"

namespace tessera::codegen {
namespace {

using enum DataType;

constexpr Instruction kOperand = {.operation = Operation::Operand, .type = Float32};

Instruction of(Operation operation, DataType type, std::array<InstructionId, 3> arguments) {
  return {.operation = operation, .type = type, .arguments = arguments};
}

Instruction constant(DataType type, uint64_t bits) {
  return {.operation = Operation::Constant, .type = type, .bits = bits};
}

struct Wrong {
  const char* name;
  Instructions instructions;
  const char* reason;
};

TEST(Expression, ViolationsAreNamed) {
  const DataType operands[] = {Float32};
  const Wrong rows[] = {
      {"legal", {kOperand, of(Operation::Add, Float32, {0, 0, -1})}, ""},
      {"an unknown operand",
       {{.operation = Operation::Operand, .type = Float32, .index = 1}},
       "instruction %0 reads no operand"},
      {"the operand's type",
       {{.operation = Operation::Operand, .type = Float64}},
       "instruction %0 has another type than its operand"},
      {"an unknown operation",
       {{.operation = static_cast<Operation>(99)}},
       "instruction %0 has an unknown operation"},
      {"a later argument",
       {of(Operation::Negate, Float32, {0, -1, -1})},
       "instruction %0 has an argument that is not an earlier instruction"},
      {"a missing argument",
       {kOperand, of(Operation::Add, Float32, {0, -1, -1})},
       "instruction %1 has an argument that is not an earlier instruction"},
      {"one argument more",
       {kOperand, of(Operation::Negate, Float32, {0, 0, -1})},
       "instruction %1 has too many arguments"},
      {"a constant of too many bits",
       {constant(UInt8, 256)},
       "instruction %0 has bits beyond its type"},
      {"two types",
       {kOperand, constant(Float64, 0), of(Operation::Add, Float32, {0, 1, -1})},
       "instruction %2 has arguments of different types"},
      {"arithmetic of 16-bit floats",
       {constant(Float16, 0), of(Operation::Add, Float16, {0, 0, -1})},
       "instruction %1 does not compute this type"},
      {"a comparison's type",
       {kOperand, of(Operation::Less, Float32, {0, 0, -1})},
       "instruction %1 has a wrong type"},
      {"a condition",
       {kOperand, of(Operation::Select, Float32, {0, 0, 0})},
       "instruction %1 has a condition that is no bool"},
      {"a division by 0",
       {constant(Int32, 0), of(Operation::Divide, Int32, {0, 0, -1})},
       "instruction %1 divides integers by a value that may be 0 or -1"},
      {"a division by -1",
       {constant(Int16, 0xffff), of(Operation::Remainder, Int16, {0, 0, -1})},
       "instruction %1 divides integers by a value that may be 0 or -1"},
      {"a division by 255", {constant(UInt8, 0xff), of(Operation::Divide, UInt8, {0, 0, -1})}, ""},
      {"a conversion to itself",
       {kOperand, of(Operation::Convert, Float32, {0, -1, -1})},
       "instruction %1 is no conversion"},
      {"a conversion to uint8",
       {kOperand, of(Operation::Convert, UInt8, {0, -1, -1})},
       "instruction %1 is no conversion"},
      {"float64 to float16",
       {constant(Float64, 0), of(Operation::Convert, Float16, {0, -1, -1})},
       "instruction %1 is no conversion"},
      {"another size",
       {kOperand, of(Operation::BitCast, Int64, {0, -1, -1})},
       "instruction %1 changes the size"},
      {"a reduction of int8",
       {constant(Int8, 1), of(Operation::ReduceSum, Int8, {0, -1, -1})},
       "instruction %1 does not compute this type"},
  };
  for (const Wrong& row : rows) {
    EXPECT_EQ(explain_violation(row.instructions, operands), row.reason) << row.name;
  }
}

TEST(Expression, TextHasALineForEachInstruction) {
  ExpressionBuilder builder;
  const InstructionId x = builder.operand(0, Float32);
  const InstructionId y = builder.add(x, builder.number(Float32, 1));
  const InstructionId results[] = {y};
  EXPECT_EQ(text(builder.instructions(), results),
            "%0 = operand 0 : float32\n"
            "%1 = constant 0x3f800000 : float32\n"
            "%2 = add %0 %1 : float32\n"
            "result %2\n");
}

TEST(ExpressionBuilder, AddsEqualInstructionsOnce) {
  ExpressionBuilder builder;
  const InstructionId x = builder.operand(0, Float32);
  EXPECT_EQ(builder.add(x, x), builder.add(x, x));
  EXPECT_NE(builder.subtract(x, x), builder.add(x, x));
  EXPECT_EQ(builder.convert(x, Float32), x);
  EXPECT_EQ(builder.select(builder.less(x, x), x, x), x);
}

// Builds (a * b + c) - d with the operands in the order that `numbers` gives, and c before a * b or
// after it.
CanonicalExpression difference(const std::array<int32_t, 4>& numbers, bool is_sum_first,
                               bool has_unused) {
  ExpressionBuilder builder;
  if (has_unused) builder.square_root(builder.operand(numbers[3], Float32));
  const InstructionId d = is_sum_first ? -1 : builder.operand(numbers[3], Float32);
  const InstructionId a = builder.operand(numbers[0], Float32);
  const InstructionId b = builder.operand(numbers[1], Float32);
  const InstructionId c = builder.operand(numbers[2], Float32);
  const InstructionId product = is_sum_first ? builder.multiply(a, b) : builder.multiply(b, a);
  const InstructionId sum = is_sum_first ? builder.add(product, c) : builder.add(c, product);
  const InstructionId last = d >= 0 ? d : builder.operand(numbers[3], Float32);
  const InstructionId results[] = {builder.subtract(sum, last)};
  // a and b are interchangeable; c and d are read in other ways.
  std::vector<std::string> traits(4);
  traits[static_cast<size_t>(numbers[2])] = "row";
  traits[static_cast<size_t>(numbers[3])] = "column";
  const std::vector<std::string> result_traits = {"whole"};
  return canonical(builder.instructions(), results, traits, result_traits);
}

TEST(Canonical, EqualComputationsHaveEqualTexts) {
  const CanonicalExpression first = difference({0, 1, 2, 3}, true, false);
  const std::string expected = text(first.instructions, first.results);
  for (const auto& numbers : {std::array{3, 2, 1, 0}, std::array{1, 0, 3, 2}}) {
    for (const bool is_sum_first : {true, false}) {
      for (const bool has_unused : {true, false}) {
        const CanonicalExpression other = difference(numbers, is_sum_first, has_unused);
        EXPECT_EQ(text(other.instructions, other.results), expected);
        EXPECT_EQ(other.operand_order.size(), 4U);
      }
    }
  }
}

TEST(Canonical, KeepsWhatIsReadAndWritten) {
  const CanonicalExpression found = difference({3, 2, 1, 0}, false, true);
  // (2 * 3 + 5) - 7
  const float values[] = {7, 5, 3, 2};
  std::vector<Column> operands;
  for (const int32_t old : found.operand_order) {
    operands.push_back({std::bit_cast<uint32_t>(values[old])});
  }
  const std::vector<Column> results = evaluate(found.instructions, found.results, operands);
  EXPECT_EQ(std::bit_cast<float>(static_cast<uint32_t>(results[0][0])), 4);
}

TEST(Canonical, DifferentComputationsDiffer) {
  ExpressionBuilder builder;
  const InstructionId x = builder.operand(0, Float32);
  const InstructionId y = builder.operand(1, Float32);
  const std::vector<std::string> traits = {"a", "b"};
  const std::vector<std::string> result_traits = {"whole"};
  std::set<std::string> texts;
  const InstructionId differences[] = {builder.subtract(x, y), builder.subtract(y, x),
                                       builder.add(x, y), builder.divide(x, y), builder.add(x, x)};
  for (const InstructionId result : differences) {
    const CanonicalExpression found =
        canonical(builder.instructions(), {{result}}, traits, result_traits);
    texts.insert(text(found.instructions, found.results) +
                 traits[static_cast<size_t>(found.operand_order[0])]);
  }
  EXPECT_EQ(texts.size(), std::size(differences));
}

TEST(Canonical, ThousandsOfInstructionsInARow) {
  ExpressionBuilder builder;
  InstructionId x = builder.operand(0, Float32);
  for (int count = 0; count < 20'000; ++count) x = builder.negate(builder.add(x, x));
  const std::vector<std::string> traits = {""};
  const CanonicalExpression found = canonical(builder.instructions(), {{x}}, traits, traits);
  EXPECT_EQ(found.instructions.size(), 40'001U);
}

// --- Evaluating ----------------------------------------------------------------------------------

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Conversion {
  float value;
  DataType to;
  uint64_t bits;
};

TEST(Evaluate, ConvertsAsTheContractSays) {
  const Conversion rows[] = {
      {2.9F, Int32, 2},
      {-2.9F, Int32, 0xfffffffe},
      {3e9F, Int32, 0x7fffffff},
      {-3e9F, Int32, 0x80000000},
      {kNan, Int32, 0},
      {kInfinity, Int64, 0x7fffffffffffffff},
      {-kInfinity, Int64, 0x8000000000000000},
      {-1, UInt64, 0},
      {1e20F, UInt64, ~uint64_t{0}},
      {65519, Float16, 0x7bff},
      {65520, Float16, 0x7c00},
      {1.00390625F, BFloat16, 0x3f80},
      {0.5F, Float64, 0x3fe0000000000000},
  };
  for (const Conversion& row : rows) {
    ExpressionBuilder builder;
    const InstructionId results[] = {builder.convert(builder.operand(0, Float32), row.to)};
    const Column operand = {std::bit_cast<uint32_t>(row.value)};
    const std::vector<Column> found = evaluate(builder.instructions(), results, {{operand}});
    EXPECT_EQ(found[0][0], row.bits) << row.value << " to " << name(row.to);
  }
}

TEST(Evaluate, IntegersWrapAround) {
  ExpressionBuilder builder;
  const InstructionId x = builder.operand(0, Int8);
  const InstructionId results[] = {builder.add(x, x), builder.multiply(x, x), builder.negate(x),
                                   builder.absolute(x),
                                   builder.shift_right(x, builder.number(Int8, 7))};
  const Column operand = {0x80};
  const std::vector<Column> found = evaluate(builder.instructions(), results, {{operand}});
  const uint64_t expected[] = {0, 0, 0x80, 0x80, 0xff};
  for (size_t index = 0; index < found.size(); ++index) {
    EXPECT_EQ(found[index][0], expected[index]) << index;
  }
}

TEST(Evaluate, ReducesRows) {
  ExpressionBuilder builder;
  const InstructionId x = builder.operand(0, Float32);
  const InstructionId results[] = {
      builder.reduce(Operation::ReduceSum, x), builder.reduce(Operation::ReduceMax, x),
      builder.reduce(Operation::ReduceMin, x), builder.reduce(Operation::ReduceProduct, x)};
  Column operand;
  for (const float element : {1.0F, 2.0F, 3.0F, kNan, -kInfinity, 4.0F}) {
    operand.push_back(std::bit_cast<uint32_t>(element));
  }
  const std::vector<Column> found = evaluate(builder.instructions(), results, {{operand}}, 3);
  const float expected[] = {6, 3, 1, 6};
  for (size_t index = 0; index < found.size(); ++index) {
    for (size_t point = 0; point < 6; ++point) {
      const float value = std::bit_cast<float>(static_cast<uint32_t>(found[index][point]));
      EXPECT_TRUE(point < 3 ? value == expected[index] : value != value) << index << " " << point;
    }
  }
}

}  // namespace
}  // namespace tessera::codegen
