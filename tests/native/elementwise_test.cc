// Unary functions, in every dense layout.

#include <string>
#include <vector>

#include "each_target.h"
#include "random_elements.h"

namespace tessera {
namespace {

const std::vector<std::string> kFunctions = {
    "Abs",       "Acos",        "Acosh",     "Asin",     "Asinh",
    "Atan",      "Atanh",       "Ceil",      "Celu",     "Cos",
    "Cosh",      "Elu",         "Erf",       "Exp",      "Floor",
    "Gelu",      "HardSigmoid", "HardSwish", "IsInf",    "IsNaN",
    "LeakyRelu", "Log",         "Mish",      "Neg",      "Reciprocal",
    "Relu",      "Round",       "Selu",      "Shrink",   "Sigmoid",
    "Sign",      "Sin",         "Sinh",      "Softplus", "Softsign",
    "Sqrt",      "Swish",       "Tan",       "Tanh",     "ThresholdedRelu"};

void set_number(Dice& dice, Attributes& attributes, const char* name) {
  if (dice.one_in(2)) attributes.set(name, dice.number(0.1F, 2));
}

Attributes random_attributes(Dice& dice, const std::string& op) {
  Attributes attributes;
  if (op == "Gelu" && dice.one_in(2)) attributes.set("approximate", std::string("tanh"));
  if (op == "Celu" || op == "Elu" || op == "LeakyRelu" || op == "Selu" || op == "HardSigmoid" ||
      op == "Swish" || op == "ThresholdedRelu") {
    set_number(dice, attributes, "alpha");
  }
  if (op == "Selu") set_number(dice, attributes, "gamma");
  if (op == "HardSigmoid") set_number(dice, attributes, "beta");
  if (op == "Shrink") {
    set_number(dice, attributes, "lambd");
    set_number(dice, attributes, "bias");
  }
  if (op == "IsInf") attributes.set("detect_negative", dice.whole(0, 1));
  return attributes;
}

RandomGraph function_of(Dice& dice, const ops::Registry& registry, DataType type,
                        const ElementRange& range) {
  RandomGraph made(registry, 25);
  std::string op = dice.pick(kFunctions);
  // Shrink takes no bfloat16.
  if (op == "Shrink" && type == DataType::BFloat16) op = "Relu";
  made.input("x", random_elements(dice, type, random_dims(dice), range));
  made.node("y", op, {"x"}, random_attributes(dice, op));
  return made.ending_in("y");
}

TEST(NativeElementwise, FunctionsAsTheReference) {
  const Totals totals = check_each_target(
      1, 4000,
      [](Dice& dice, const ops::Registry& registry) {
        const std::vector<ElementRange> ranges = {{-3, 3}, {-1, 1}, {-100, 100}, {-0.01F, 0.01F}};
        return function_of(dice, registry, DataType::Float32, dice.pick(ranges));
      },
      {.relative = 2e-6, .of_largest = 1e-6});
  EXPECT_GE(totals.answered, 4000);
}

// Errors are relative to each element, not to the largest one: a few units in the last place.
TEST(NativeElementwise, NearZeroAndFarFromItAsExact) {
  const std::vector<std::string> functions = {"Asinh", "Atan",    "Elu",  "Erf",       "Exp",
                                              "Log",   "Sigmoid", "Sinh", "Sqrt",      "Softplus",
                                              "Tanh",  "Sin",     "Cosh", "Reciprocal"};
  const Totals totals = check_each_target(
      2, 1500,
      [&](Dice& dice, const ops::Registry& registry) {
        const std::vector<float> sizes = {1e-6F, 1e-3F, 0.1F, 1, 3, 20, 80};
        const float size = dice.pick(sizes);
        RandomGraph made(registry, 25);
        made.input("x",
                   random_elements(dice, DataType::Float32, {dice.whole(1, 60)}, {-size, size}));
        made.node("y", dice.pick(functions), {"x"});
        return made.ending_in("y");
      },
      {.relative = 1e-6, .of_largest = 0});
  EXPECT_GE(totals.answered, 1500);
}

TEST(NativeElementwise, InfinitiesAndNaNAsTheReference) {
  const Totals totals = check_each_target(3, 2000, [](Dice& dice, const ops::Registry& registry) {
    return function_of(dice, registry, DataType::Float32, {-30, 30, true});
  });
  EXPECT_GE(totals.answered, 2000);
}

// A few units in the last place of float64.
TEST(NativeElementwise, Float64) {
  static const std::vector<std::string> kWide = {
      "Abs",      "Ceil",       "Exp",  "Floor", "LeakyRelu", "Log",
      "Neg",      "Reciprocal", "Relu", "Round", "Sigmoid",   "Sign",
      "Softsign", "Sqrt",       "Tanh", "IsInf", "IsNaN",     "ThresholdedRelu"};
  const Totals totals = check_each_target(
      7, 2000,
      [](Dice& dice, const ops::Registry& registry) {
        const std::vector<ElementRange> ranges = {{-3, 3},     {-1e-3F, 1e-3F}, {-30, 30, true},
                                                  {-700, 700}, {0.9F, 1.1F},    {0, 1e30F, true}};
        RandomGraph made(registry, 25);
        const std::string op = dice.pick(kWide);
        made.input("x",
                   random_elements(dice, DataType::Float64, random_dims(dice), dice.pick(ranges)));
        made.node("y", op, {"x"}, random_attributes(dice, op));
        return made.ending_in("y");
      },
      {.relative = 1.5e-15, .of_largest = 0});
  EXPECT_GE(totals.answered, 2000);
}

TEST(NativeElementwise, SixteenBitFloats) {
  const Totals totals =
      check_each_target(4, 1000,
                        [](Dice& dice, const ops::Registry& registry) {
                          const auto type = dice.one_in(2) ? DataType::Float16 : DataType::BFloat16;
                          return function_of(dice, registry, type, {-3, 3, dice.one_in(3)});
                        },
                        // Rounded to float32 first, so that the last place sometimes differs.
                        {.relative = 8e-3, .of_largest = 1e-6});
  EXPECT_GE(totals.answered, 1000);
}

TEST(NativeElementwise, IntegersAndBools) {
  const Totals totals = check_each_target(5, 1000, [](Dice& dice, const ops::Registry& registry) {
    static const std::vector<DataType> kTypes = {
        DataType::Int8,  DataType::Int16,  DataType::Int32,  DataType::Int64,
        DataType::UInt8, DataType::UInt16, DataType::UInt32, DataType::UInt64};
    static const std::vector<DataType> kSigned = {DataType::Int8, DataType::Int16, DataType::Int32,
                                                  DataType::Int64};
    static const std::vector<std::string> kOps = {"Abs", "BitwiseNot", "Neg",
                                                  "Not", "Relu",       "Sign"};
    RandomGraph made(registry, 25);
    const std::string op = dice.pick(kOps);
    DataType type = dice.pick(op == "Neg" || op == "Relu" ? kSigned : kTypes);
    if (op == "Not") type = DataType::Bool;
    made.input("x", random_elements(dice, type, random_dims(dice), {-100, 100, dice.one_in(2)}));
    made.node("y", op, {"x"});
    return made.ending_in("y");
  });
  EXPECT_GE(totals.answered, 1000);
}

// Angles for which multiples of pi / 2 are no longer exact.
TEST(NativeElementwise, LargeAngles) {
  const Totals totals = check_each_target(
      6, 300,
      [](Dice& dice, const ops::Registry& registry) {
        static const std::vector<std::string> kOps = {"Cos", "Sin"};
        const std::vector<float> sizes = {1e3F, 2.6e4F, 1e6F, 1e20F};
        const float size = dice.pick(sizes);
        RandomGraph made(registry, 22);
        made.input("x",
                   random_elements(dice, DataType::Float32, {dice.whole(1, 40)}, {-size, size}));
        made.node("y", dice.pick(kOps), {"x"});
        return made.ending_in("y");
      },
      {.relative = 1e-6, .of_largest = 2e-7});
  EXPECT_GE(totals.answered, 300);
}

}  // namespace
}  // namespace tessera
