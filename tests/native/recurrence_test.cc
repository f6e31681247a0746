// LSTM, GRU and RNN in both directions: few and many steps and sequences, on one and more threads;
// refusals with their reasons.
#include "random_recurrence.h"

#include <string>
#include <vector>

#include "each_target.h"
#include "random_nodes.h"

namespace tessera {
namespace {

TEST(NativeRecurrence, LstmIsThatOfTheReference) {
  const Totals totals = check_each_target(61, 600, [](Dice& dice, const ops::Registry& registry) {
    return random_recurrence(dice, registry, kLstm);
  });
  expect_answers(totals, 600, 2);
}

// Half of them reset before the product, which only others compute.
TEST(NativeRecurrence, GruIsThatOfTheReference) {
  const Totals totals = check_each_target(64, 600, [](Dice& dice, const ops::Registry& registry) {
    return random_recurrence(dice, registry, kGru);
  });
  EXPECT_GE(totals.answered, 200);
  EXPECT_EQ(totals.largest, 2U);
}

// The activation of half of them is another one.
TEST(NativeRecurrence, RnnIsThatOfTheReference) {
  const Totals totals = check_each_target(66, 600, [](Dice& dice, const ops::Registry& registry) {
    return random_recurrence(dice, registry, kRnn);
  });
  EXPECT_GE(totals.answered, 200);
  EXPECT_EQ(totals.largest, 2U);
}

// More rows than one block of the matrix product, enough that their sums are computed in chunks.
TEST(NativeRecurrence, LongSequences) {
  const Totals totals = check_each_target(62, 60, [](Dice& dice, const ops::Registry& registry) {
    return random_recurrence(dice, registry, kLstm, {.steps = 300, .batch = 40});
  });
  EXPECT_GE(totals.answered, 60);
  const Totals of_gru = check_each_target(65, 60, [](Dice& dice, const ops::Registry& registry) {
    return random_recurrence(dice, registry, kGru, {.steps = 300, .batch = 40});
  });
  EXPECT_GE(of_gru.answered, 15);
  // Without gates, random weights amplify the last digits from step to step, so these are few.
  const Totals of_rnn = check_each_target(67, 60, [](Dice& dice, const ops::Registry& registry) {
    return random_recurrence(dice, registry, kRnn, {.steps = 8, .batch = 200});
  });
  EXPECT_GE(of_rnn.answered, 15);
}

// Weights so large that threads share each step if there are more threads than directions and
// sequences.
TEST(NativeRecurrence, SharedSteps) {
  const Totals totals = check_each_target(63, 8, [](Dice& dice, const ops::Registry& registry) {
    RandomGraph made(registry, 14);
    const int64_t hidden = 330 + dice.whole(0, 20);
    made.input("x", dice.tensor({3, 1, 5}));
    const bool is_gru = dice.one_in(2);
    const int64_t width = (is_gru ? 3 : 4) * hidden;
    made.constant("w", dice.tensor({1, width, 5}, -0.5F, 0.5F));
    made.constant("r", dice.tensor({1, width, hidden}, -0.05F, 0.05F));
    made.constant("b", dice.tensor({1, 2 * width}, -0.5F, 0.5F));
    Attributes attributes = attributes_of(
        {{"hidden_size", hidden}, {"direction", dice.one_in(2) ? "reverse" : "forward"}});
    if (is_gru) attributes.set("linear_before_reset", int64_t{1});
    made.node("node", is_gru ? "GRU" : "LSTM", {"x", "w", "r", "b"}, {"y", "last"}, attributes);
    return made.ending_in("y", "last");
  });
  EXPECT_GE(totals.answered, 8);
}

TEST(NativeRecurrence, Refusals) {
  using InputNames = std::vector<std::string>;
  const InputNames plain = {"x", "w", "r"};
  const struct {
    Recurrent recurrent;
    Attributes attributes;
    InputNames inputs;
    const char* reason;
  } refused[] = {
      {kLstm, attributes_of({{"clip", 2.0F}}), plain, "clip"},
      {kLstm, attributes_of({{"layout", 1}}), plain, "layout"},
      {kLstm, attributes_of({{"input_forget", 1}}), plain, "forget gate"},
      {kLstm, attributes_of({{"activations", InputNames{"Tanh", "Tanh", "Tanh"}}}), plain,
       "Sigmoid, Tanh and Tanh"},
      {kLstm, {}, {"x", "fed", "r"}, "'fed'"},
      {kLstm, {}, {"x", "w", "r", "", "lengths"}, "sequence_lens"},
      {kLstm, {}, {"x", "w", "r", "", "", "", "", "holes"}, "peephole"},
      {kGru, {}, plain, "linear_before_reset"},
      {kGru, attributes_of({{"activations", InputNames{"Sigmoid", "Relu"}}}), plain,
       "Sigmoid and Tanh"},
      {kRnn, attributes_of({{"activations", InputNames{"Relu"}}}), plain,
       "Tanh for its activation"},
      {kRnn, attributes_of({{"clip", 2.0F}}), plain, "clip"},
  };
  for (const auto& [recurrent, attributes, inputs, reason] : refused) {
    const Totals totals = check_each_target(1, 1, [&](Dice& dice, const ops::Registry& registry) {
      return small_recurrence(dice, registry, recurrent, attributes, inputs);
    });
    expect_refusal(totals, reason);
  }
}

}  // namespace
}  // namespace tessera
