// LSTM in both directions: few and many steps and sequences, on one and more threads; refusals with
// their reasons.
#include "random_recurrence.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "each_target.h"

namespace tessera {
namespace {

TEST(NativeRecurrence, LstmIsThatOfTheReference) {
  const Totals totals = check_each_target(61, 600, [](Dice& dice, const ops::Registry& registry) {
    return random_recurrence(dice, registry, kLstm);
  });
  EXPECT_GE(totals.answered, 600);
  EXPECT_EQ(totals.largest, 2U);
}

// More rows than one block of the matrix product, enough that their sums are computed in chunks.
TEST(NativeRecurrence, LongSequences) {
  const Totals totals = check_each_target(62, 60, [](Dice& dice, const ops::Registry& registry) {
    return random_recurrence(dice, registry, kLstm, {.steps = 300, .batch = 40});
  });
  EXPECT_GE(totals.answered, 60);
}

// Weights so large that threads share each step if there are more threads than directions and
// sequences.
TEST(NativeRecurrence, SharedSteps) {
  const Totals totals = check_each_target(63, 8, [](Dice& dice, const ops::Registry& registry) {
    RandomGraph made(registry, 14);
    const int64_t hidden = 330 + dice.whole(0, 20);
    made.input("x", dice.tensor({3, 1, 5}));
    made.constant("w", dice.tensor({1, 4 * hidden, 5}, -0.5F, 0.5F));
    made.constant("r", dice.tensor({1, 4 * hidden, hidden}, -0.05F, 0.05F));
    Attributes attributes;
    attributes.set("hidden_size", hidden);
    attributes.set("direction", dice.one_in(2) ? "reverse" : "forward");
    made.builder.node("node", "LSTM", {"x", "w", "r"}, {"y", "", "y_c"}, attributes);
    made.builder.output("y").output("y_c");
    return made;
  });
  EXPECT_GE(totals.answered, 8);
}

Attributes one(const char* name, const Attribute& value) {
  Attributes attributes;
  attributes.set(name, value);
  return attributes;
}

TEST(NativeRecurrence, Refusals) {
  using InputNames = std::vector<std::string>;
  const InputNames plain = {"x", "w", "r"};
  const struct {
    Attributes attributes;
    InputNames inputs;
    const char* reason;
  } kRefused[] = {
      {one("clip", 2.0F), plain, "clip"},
      {one("layout", int64_t{1}), plain, "layout"},
      {one("input_forget", int64_t{1}), plain, "forget gate"},
      {one("activations", InputNames{"Tanh", "Tanh", "Tanh"}), plain, "Sigmoid, Tanh and Tanh"},
      {{}, {"x", "fed", "r"}, "'fed'"},
      {{}, {"x", "w", "r", "", "lengths"}, "sequence_lens"},
      {{}, {"x", "w", "r", "", "", "", "", "holes"}, "peephole"},
  };
  for (const auto& [attributes, inputs, reason] : kRefused) {
    const Totals totals = check_each_target(1, 1, [&](Dice& dice, const ops::Registry& registry) {
      RandomGraph made(registry, 14);
      made.input("x", dice.tensor({2, 2, 1}));
      made.input("fed", dice.tensor({1, 4, 1}));
      made.constant("w", dice.tensor({1, 4, 1}));
      made.constant("r", dice.tensor({1, 4, 1}));
      made.constant("holes", dice.tensor({1, 3}));
      made.constant("lengths",
                    Tensor::from<int32_t>(DataType::Int32, {2}, std::vector<int32_t>{2, 1}));
      made.builder.node("node", "LSTM", inputs, {"y"}, attributes);
      made.builder.output("y");
      return made;
    });
    EXPECT_EQ(totals.answered, 0) << reason;
    ASSERT_EQ(totals.refusals.size(), 1U) << reason;
    EXPECT_NE(totals.refusals.begin()->first.find(reason), std::string::npos)
        << totals.refusals.begin()->first;
  }
}

}  // namespace
}  // namespace tessera
