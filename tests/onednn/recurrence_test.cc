// LSTM, GRU and RNN in all directions; refusals with their reasons.
#include "candidate_check.h"
#include "random_nodes.h"
#include "random_recurrence.h"

namespace tessera {
namespace {

class OnednnRecurrences : public testing::TestWithParam<Recurrent> {};

TEST_P(OnednnRecurrences, AreThoseOfTheReference) {
  const Totals totals =
      check_cases("onednn", 41, 250, [&](Dice& dice, const ops::Registry& registry) {
        return random_recurrence(dice, registry, GetParam());
      });
  EXPECT_EQ(totals.answered, 250);
  EXPECT_EQ(totals.largest, 2U);
}

INSTANTIATE_TEST_SUITE_P(Ops, OnednnRecurrences, testing::Values(kLstm, kGru, kRnn),
                         [](const auto& tested) { return std::string(tested.param.op); });

// The offers for a node of one hidden unit with these attributes and inputs; the input "steps" has
// wrong lengths.
Totals offered(const Recurrent& recurrent, const Attributes& attributes,
               const std::vector<std::string>& inputs) {
  return check_cases("onednn", 1, 1, [&](Dice& dice, const ops::Registry& registry) {
    return small_recurrence(dice, registry, recurrent, attributes, inputs);
  });
}

TEST(OnednnRecurrence, Refusals) {
  using Names = std::vector<std::string>;
  const Names plain = {"x", "w", "r"};
  const struct {
    Recurrent recurrent;
    Attributes attributes;
    Names inputs;
    const char* reason;
  } kRefused[] = {
      {kGru, attributes_of({{"clip", 2.0F}}), plain, "clip"},
      {kGru, attributes_of({{"layout", 1}}), plain, "layout"},
      {kGru, {}, {"x", "w", "r", "", "lengths"}, "sequence_lens"},
      {kGru, {}, {"x", "fed", "r"}, "'fed'"},
      {kGru, attributes_of({{"activations", Names{"Sigmoid", "Relu"}}}), plain, "Sigmoid and Tanh"},
      {kLstm, attributes_of({{"activations", Names{"Tanh", "Tanh", "Tanh"}}}), plain,
       "Sigmoid, Tanh and Tanh"},
      {kLstm, attributes_of({{"input_forget", 1}}), plain, "forget gate"},
      {kLstm, {}, {"x", "w", "r", "", "", "", "", "holes"}, "peephole"},
      {kRnn, attributes_of({{"activations", Names{"Elu"}}}), plain, "Tanh, Relu or Sigmoid"},
      {kRnn,
       attributes_of({{"activations", Names{"Relu", "Tanh"}}, {"direction", "bidirectional"}}),
       plain, "both directions"},
  };
  for (const auto& [recurrent, attributes, inputs, reason] : kRefused) {
    expect_refusal(offered(recurrent, attributes, inputs), reason);
  }
}

}  // namespace
}  // namespace tessera
