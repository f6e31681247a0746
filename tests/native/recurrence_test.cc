// LSTM in both directions: few and many steps and sequences, on one and more threads; refusals with
// their reasons.
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
    made.node("node", "LSTM", {"x", "w", "r"}, {"y", "", "y_c"},
              attributes_of({{"hidden_size", hidden},
                             {"direction", dice.one_in(2) ? "reverse" : "forward"}}));
    return made.ending_in("y", "y_c");
  });
  EXPECT_GE(totals.answered, 8);
}

TEST(NativeRecurrence, Refusals) {
  using InputNames = std::vector<std::string>;
  const InputNames plain = {"x", "w", "r"};
  const struct {
    Attributes attributes;
    InputNames inputs;
    const char* reason;
  } kRefused[] = {
      {attributes_of({{"clip", 2.0F}}), plain, "clip"},
      {attributes_of({{"layout", 1}}), plain, "layout"},
      {attributes_of({{"input_forget", 1}}), plain, "forget gate"},
      {attributes_of({{"activations", InputNames{"Tanh", "Tanh", "Tanh"}}}), plain,
       "Sigmoid, Tanh and Tanh"},
      {{}, {"x", "fed", "r"}, "'fed'"},
      {{}, {"x", "w", "r", "", "lengths"}, "sequence_lens"},
      {{}, {"x", "w", "r", "", "", "", "", "holes"}, "peephole"},
  };
  for (const auto& [attributes, inputs, reason] : kRefused) {
    const Totals totals = check_each_target(1, 1, [&](Dice& dice, const ops::Registry& registry) {
      return small_recurrence(dice, registry, kLstm, attributes, inputs);
    });
    expect_refusal(totals, reason);
  }
}

}  // namespace
}  // namespace tessera
