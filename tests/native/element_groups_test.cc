// Groups of elementwise nodes in one pass.

#include <string>
#include <vector>

#include "each_target.h"
#include "random_elements.h"

namespace tessera {
namespace {

// A few nodes, each of which reads results of earlier ones or an operand from outside.
RandomGraph some_nodes(Dice& dice, const ops::Registry& registry) {
  // Keeps errors small: no operand is far larger than the result.
  static const std::vector<std::string> kFunctions = {"Abs",     "Erf",      "HardSwish", "Relu",
                                                      "Sigmoid", "Softsign", "Sqrt",      "Tanh"};
  static const std::vector<std::string> kPairs = {"Add", "Div", "Max", "Mul"};
  RandomGraph made(registry, 19);
  const std::vector<int64_t> dims = random_dims(dice);
  made.input("v0", random_elements(dice, DataType::Float32, dims, {0.1F, 1}));
  std::vector<std::string> values = {"v0"};
  const int64_t count = dice.whole(2, 8);
  for (int64_t number = 1; number <= count; ++number) {
    const std::string name = std::string("v") + std::to_string(number);
    const std::string& from = dice.one_in(3) ? dice.pick(values) : values.back();
    if (dice.one_in(2)) {
      made.node(name, dice.pick(kFunctions), {from});
    } else {
      std::string other = dice.pick(values);
      if (dice.one_in(2)) {
        other = std::string("c") + std::to_string(number);
        made.operand(
            dice, other,
            random_elements(dice, DataType::Float32, broadcastable(dice, dims), {0.5F, 1.5F}));
      }
      const std::string& op = dice.pick(kPairs);
      if (op == "Div" && other[0] == 'v') other = values.front();
      const bool is_left = op != "Div" && dice.one_in(3);
      made.node(name, op, is_left ? std::vector{other, from} : std::vector{from, other}, {name});
    }
    values.push_back(name);
  }
  made.builder.output(values.back());
  if (dice.one_in(5)) made.builder.output(values[values.size() / 2]);
  return made;
}

TEST(NativeElementGroups, AnyGraphAsTheReference) {
  const Totals totals = check_each_target(31, 1500, some_nodes);
  EXPECT_GE(totals.answered, 1500);
  EXPECT_GE(totals.largest, 6U);
}

// So large that results are streamed past the caches, in every form of the loop.
TEST(NativeElementGroups, LargeResults) {
  const Totals totals = check_each_target(34, 10, [](Dice& dice, const ops::Registry& registry) {
    RandomGraph made(registry, 19);
    // Two dimensions, which only one layout supports.
    const std::vector<int64_t> dims = {dice.whole(1500, 1510), dice.whole(1501, 1510)};
    made.input("x", random_elements(dice, DataType::Float32, dims));
    const std::vector<std::vector<int64_t>> others = {dims, {}, {dims[0], 1}, {dims[1]}};
    const std::vector<int64_t>& other = dice.pick(others);
    made.input("y", random_elements(dice, DataType::Float32, other, {0.5F, 2}));
    if (dice.one_in(3)) {
      made.node("c", "Greater", {"x", "y"});
      made.node("z", "Where", {"c", "x", "y"});
    } else {
      made.node("m", "Mul", {"x", "y"});
      made.node("z", "Tanh", {"m"});
    }
    return made.ending_in("z");
  });
  EXPECT_GE(totals.answered, 10);
}

TEST(NativeElementGroups, SwishWrittenOut) {
  const Totals totals = check_each_target(33, 200, [](Dice& dice, const ops::Registry& registry) {
    RandomGraph made(registry, 19);
    made.input("x", random_elements(dice, DataType::Float32, random_dims(dice), {-9, 9}));
    made.node("s", "Sigmoid", {"x"});
    const bool is_left = dice.one_in(2);
    made.node("y", "Mul",
              is_left ? std::vector<std::string>{"s", "x"} : std::vector<std::string>{"x", "s"});
    // If another node reads it, it is still computed.
    if (dice.one_in(3)) made.builder.output("s");
    return made.ending_in("y");
  });
  EXPECT_GE(totals.answered, 200);
}

TEST(NativeElementGroups, TypesChangeOnTheWay) {
  const Totals totals = check_each_target(
      32, 1000,
      [](Dice& dice, const ops::Registry& registry) {
        RandomGraph made(registry, 19);
        const std::vector<int64_t> dims = random_dims(dice);
        const auto half = dice.one_in(2) ? DataType::Float16 : DataType::Float32;
        made.input("x", random_elements(dice, half, dims));
        made.operand(dice, "limit", random_elements(dice, half, broadcastable(dice, dims)));
        made.operand(dice, "other", random_elements(dice, half, broadcastable(dice, dims)));
        made.node("big", "Greater", {"x", "limit"});
        made.node("small", "Not", {"big"});
        made.node("chosen", "Where", {"small", "x", "other"});
        made.node("twice", "Add", {"chosen", "chosen"});
        made.node("wide", "Cast", {"twice"}, attributes_of({{"to", 11}}));
        return made.ending_in("wide");
      },
      {.relative = 2e-3, .of_largest = 1e-6});
  EXPECT_GE(totals.answered, 1000);
  EXPECT_GE(totals.largest, 5U);
}

}  // namespace
}  // namespace tessera
