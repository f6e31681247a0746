// Elementwise functions of two and more operands, with broadcasting.

#include <algorithm>
#include <string>
#include <vector>

#include "base/tensor/tensors_test.h"
#include "each_target.h"
#include "random_elements.h"

namespace tessera {
namespace {

const std::vector<DataType> kIntegers = {DataType::Int8,   DataType::Int16, DataType::Int32,
                                         DataType::Int64,  DataType::UInt8, DataType::UInt16,
                                         DataType::UInt32, DataType::UInt64};
const std::vector<DataType> kNumberTypes = {
    DataType::Int8,    DataType::Int16,   DataType::Int32,   DataType::Int64,   DataType::UInt8,
    DataType::UInt16,  DataType::UInt32,  DataType::UInt64,  DataType::Float32, DataType::Float64,
    DataType::Float32, DataType::Float16, DataType::BFloat16};

const std::vector<std::string> kArithmetic = {"Add", "Div", "Mod", "Mul", "Sub"};
const std::vector<std::string> kQuestions = {"Equal", "Greater", "GreaterOrEqual", "Less",
                                             "LessOrEqual"};
const std::vector<std::string> kLogic = {"And", "Or", "Xor", "Equal"};
const std::vector<std::string> kBits = {"BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor"};
const std::vector<std::string> kVariadic = {"Max", "Mean", "Min", "Sum"};

// Two operands in either order, of which at least one has the sizes `dims`.
RandomGraph pair(Dice& dice, const ops::Registry& registry, const std::string& op, DataType type,
                 Attributes attributes, const ElementRange& left, const ElementRange& right) {
  RandomGraph made(registry, 25);
  const std::vector<int64_t> dims = random_dims(dice);
  std::vector<int64_t> first = dims;
  std::vector<int64_t> second = broadcastable(dice, dims);
  if (dice.one_in(2)) std::swap(first, second);
  // Both operands broadcast.
  if (dice.one_in(6)) {
    first = dims;
    second = dims;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      (axis % 2 == 0 ? first : second)[axis] = 1;
    }
  }
  if (dice.one_in(10) && first == second) {
    made.input("x", random_elements(dice, type, first, right));
    made.node("z", op, {"x", "x"}, std::move(attributes));
  } else {
    made.operand(dice, "x", random_elements(dice, type, first, left));
    made.operand(dice, "y", random_elements(dice, type, second, right));
    made.node("z", op, {"x", "y"}, std::move(attributes));
  }
  return made.ending_in("z");
}

TEST(NativeBinary, Float32AsTheReference) {
  const Totals totals = check_each_target(
      11, 4000,
      [](Dice& dice, const ops::Registry& registry) {
        static const std::vector<std::string> kOps = {"Add", "Div", "Mul", "Sub", "PRelu"};
        std::string op = dice.pick(kOps);
        const ElementRange range = {-3, 3, dice.one_in(4)};
        if (op != "PRelu") {
          return pair(dice, registry, op, DataType::Float32, {}, range, range);
        }
        RandomGraph made(registry, 16);
        const std::vector<int64_t> dims = random_dims(dice);
        made.input("x", random_elements(dice, DataType::Float32, dims, range));
        made.operand(dice, "s",
                     random_elements(dice, DataType::Float32, broadcastable(dice, dims)));
        made.node("y", "PRelu", {"x", "s"});
        return made.ending_in("y");
      },
      {.relative = 1e-6, .of_largest = 0});
  EXPECT_GE(totals.answered, 4000);
}

TEST(NativeBinary, ArithmeticOfAllTypes) {
  const Totals totals = check_each_target(
      12, 3000,
      [](Dice& dice, const ops::Registry& registry) {
        const std::string op = dice.pick(kArithmetic);
        const DataType type = dice.pick(kNumberTypes);
        Attributes attributes;
        if (op == "Mod" && (is_floating(type) || dice.one_in(2))) {
          attributes.set("fmod", int64_t{1});
        }
        const bool is_special = dice.one_in(3);
        ElementRange right = {-20, 20, is_special, false};
        if (is_integer(type) && (op == "Div" || op == "Mod")) right.has_special = false;
        return pair(dice, registry, op, type, attributes, {-100, 100, is_special}, right);
      },
      {.relative = 8e-3, .of_largest = 1e-6});
  EXPECT_GE(totals.answered, 3000);
}

TEST(NativeBinary, ComparisonsLogicAndBits) {
  const Totals totals = check_each_target(13, 3000, [](Dice& dice, const ops::Registry& registry) {
    const ElementRange range = {-2, 2, dice.one_in(3)};
    if (dice.one_in(4)) {
      return pair(dice, registry, dice.pick(kLogic), DataType::Bool, {}, range, range);
    }
    if (dice.one_in(4)) {
      const std::string op = dice.pick(kBits);
      DataType type = dice.pick(kIntegers);
      Attributes attributes;
      if (op == "BitShift") {
        static const std::vector<DataType> kUnsigned = {DataType::UInt8, DataType::UInt16,
                                                        DataType::UInt32, DataType::UInt64};
        type = dice.pick(kUnsigned);
        attributes.set("direction", std::string(dice.one_in(2) ? "LEFT" : "RIGHT"));
      }
      return pair(dice, registry, op, type, attributes, {-100, 100}, {0, 40});
    }
    return pair(dice, registry, dice.pick(kQuestions), dice.pick(kNumberTypes), {}, range, range);
  });
  EXPECT_GE(totals.answered, 3000);
}

TEST(NativeBinary, Powers) {
  const Totals totals = check_each_target(
      14, 1500,
      [](Dice& dice, const ops::Registry& registry) {
        const bool is_special = dice.one_in(3);
        if (dice.one_in(4)) {
          const auto type = dice.one_in(2) ? DataType::Int32 : DataType::Int64;
          if (!dice.one_in(3)) return pair(dice, registry, "Pow", type, {}, {-9, 9}, {-2, 12});
          RandomGraph made(registry, 15);
          made.input("x", random_elements(dice, type, random_dims(dice), {-1e6F, 1e6F}));
          made.constant("p", random_elements(dice, type, {}, {2, 2}));
          made.node("y", "Pow", {"x", "p"});
          return made.ending_in("y");
        }
        if (dice.one_in(8)) return pair(dice, registry, "Pow", DataType::Float64, {}, {}, {});
        if (dice.one_in(2)) {
          const float low = dice.one_in(2) ? 0.0F : -5.0F;
          return pair(dice, registry, "Pow", DataType::Float32, {}, {low, 20, is_special},
                      {-20, 20, is_special});
        }
        static const std::vector<float> kExponents = {2, 3, 0.5F, -1, 1, 0, 1.7F, -0.5F};
        RandomGraph made(registry, 15);
        made.input(
            "x", random_elements(dice, DataType::Float32, random_dims(dice), {-5, 5, is_special}));
        const float exponent = dice.pick(kExponents);
        made.constant("p", floats({}, {exponent}));
        made.node("y", "Pow", {"x", "p"});
        return made.ending_in("y");
      },
      {.relative = 2e-6, .of_largest = 0});
  EXPECT_GE(totals.answered, 1500);
}

TEST(NativeBinary, WhereOfAllTypes) {
  const Totals totals = check_each_target(15, 2000, [](Dice& dice, const ops::Registry& registry) {
    std::vector<DataType> types = kNumberTypes;
    types.push_back(DataType::Bool);
    const DataType type = dice.pick(types);
    const std::vector<int64_t> dims = random_dims(dice);
    RandomGraph made(registry, 17);
    const auto shape = [&] { return broadcastable(dice, dims); };
    made.operand(dice, "c", random_elements(dice, DataType::Bool, shape()));
    made.operand(dice, "x", random_elements(dice, type, shape()));
    made.operand(dice, "y", random_elements(dice, type, shape()));
    made.node("z", "Where", {"c", "x", "y"});
    return made.ending_in("z");
  });
  EXPECT_GE(totals.answered, 2000);
}

TEST(NativeBinary, OfManyOperands) {
  const Totals totals = check_each_target(
      16, 2000,
      [](Dice& dice, const ops::Registry& registry) {
        const std::string op = dice.pick(kVariadic);
        const bool takes_all = op == "Max" || op == "Min";
        DataType type = dice.pick(kNumberTypes);
        if (!takes_all && !is_floating(type)) type = DataType::Float32;
        const std::vector<int64_t> dims = random_dims(dice);
        const int64_t count = dice.whole(1, 5);
        RandomGraph made(registry, 17);
        std::vector<std::string> names;
        for (int64_t index = 0; index < count; ++index) {
          names.push_back(std::string("x") + std::to_string(index));
          made.operand(dice, names.back(),
                       random_elements(dice, type, broadcastable(dice, dims),
                                       {-3, 3, takes_all && dice.one_in(2)}));
        }
        made.node("y", op, names);
        return made.ending_in("y");
      },
      // Sums of 16-bit types are rounded after each step; the reference rounds once.
      {.relative = 2e-2, .of_largest = 2e-6});
  EXPECT_GE(totals.answered, 2000);
}

TEST(NativeBinary, ClipOfAllTypes) {
  const Totals totals = check_each_target(
      17, 1500,
      [](Dice& dice, const ops::Registry& registry) {
        const bool is_old = dice.one_in(5);
        RandomGraph made(registry, is_old ? 6 : 13);
        const DataType type = is_old ? DataType::Float32 : dice.pick(kNumberTypes);
        const bool is_special = dice.one_in(3);
        made.input("x", random_elements(dice, type, random_dims(dice), {-5, 5, is_special}));
        std::vector<std::string> inputs = {"x"};
        Attributes attributes;
        if (is_old) {
          if (dice.one_in(2)) attributes.set("min", dice.number(-3, 0));
          if (dice.one_in(2)) attributes.set("max", dice.number(0, 3));
        } else {
          for (const std::string name : {"low", "high"}) {
            if (dice.one_in(3)) {
              inputs.emplace_back();
              continue;
            }
            made.operand(dice, name, random_elements(dice, type, {}, {-3, 3, is_special}));
            inputs.push_back(name);
          }
        }
        made.node("y", "Clip", inputs, attributes);
        return made.ending_in("y");
      },
      {.relative = 1e-6, .of_largest = 0});
  EXPECT_GE(totals.answered, 1500);
}

// Attributes say with which axes the right operand is aligned.
TEST(NativeBinary, BeforeOperandsBroadcast) {
  const Totals totals = check_each_target(18, 1000, [](Dice& dice, const ops::Registry& registry) {
    RandomGraph made(registry, 6);
    const std::vector<int64_t> dims = {dice.whole(1, 3), dice.whole(1, 20), dice.whole(1, 5), 4};
    const int64_t axis = dice.whole(0, 3);
    const int64_t count = dice.whole(1, 4 - axis);
    std::vector<int64_t> right(dims.begin() + axis, dims.begin() + axis + count);
    made.input("x", random_elements(dice, DataType::Float32, dims));
    if (dice.one_in(4)) {
      made.operand(dice, "y", random_elements(dice, DataType::Float32, {dims[1]}));
      made.node("z", "PRelu", {"x", "y"});
    } else {
      const Attributes attributes =
          attributes_of({{"broadcast", 1}, {"axis", dice.one_in(2) ? axis : axis - 4}});
      made.operand(dice, "y", random_elements(dice, DataType::Float32, right));
      static const std::vector<std::string> kOps = {"Add", "Div", "Mul", "Sub"};
      made.node("z", dice.pick(kOps), {"x", "y"}, attributes);
    }
    return made.ending_in("z");
  });
  EXPECT_GE(totals.answered, 1000);
}

}  // namespace
}  // namespace tessera
