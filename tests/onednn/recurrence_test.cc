// LSTM, GRU and RNN in all directions; refusals with their reasons.
#include "candidate_check.h"
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
    RandomGraph made(registry, 14);
    const bool is_bidirectional = attributes.find_string("direction") != nullptr;
    const int64_t directions = is_bidirectional ? 2 : 1;
    made.input("x", dice.tensor({2, 2, 1}));
    made.constant("w", dice.tensor({directions, recurrent.gates, 1}));
    made.input("fed", dice.tensor({directions, recurrent.gates, 1}));
    made.constant("r", dice.tensor({directions, recurrent.gates, 1}));
    made.constant("holes", dice.tensor({directions, 3}));
    made.constant("lengths",
                  Tensor::from<int32_t>(DataType::Int32, {2}, std::vector<int32_t>{2, 1}));
    made.builder.node("node", recurrent.op, inputs, {"y"}, attributes);
    made.builder.output("y");
    return made;
  });
}

template <class T>
Attributes with(const char* name, const T& value, const char* direction = nullptr) {
  Attributes attributes;
  attributes.set(name, value);
  if (direction != nullptr) attributes.set("direction", direction);
  return attributes;
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
      {kGru, with("clip", 2.0F), plain, "clip"},
      {kGru, with("layout", int64_t{1}), plain, "layout"},
      {kGru, {}, {"x", "w", "r", "", "lengths"}, "sequence_lens"},
      {kGru, {}, {"x", "fed", "r"}, "'fed'"},
      {kGru, with("activations", Names{"Sigmoid", "Relu"}), plain, "Sigmoid and Tanh"},
      {kLstm, with("activations", Names{"Tanh", "Tanh", "Tanh"}), plain, "Sigmoid, Tanh and Tanh"},
      {kLstm, with("input_forget", int64_t{1}), plain, "forget gate"},
      {kLstm, {}, {"x", "w", "r", "", "", "", "", "holes"}, "peephole"},
      {kRnn, with("activations", Names{"Elu"}), plain, "Tanh, Relu or Sigmoid"},
      {kRnn, with("activations", Names{"Relu", "Tanh"}, "bidirectional"), plain, "both directions"},
  };
  for (const auto& [recurrent, attributes, inputs, reason] : kRefused) {
    const Totals totals = offered(recurrent, attributes, inputs);
    EXPECT_EQ(totals.answered, 0) << reason;
    ASSERT_EQ(totals.refusals.size(), 1U) << reason;
    EXPECT_NE(totals.refusals.begin()->first.find(reason), std::string::npos)
        << totals.refusals.begin()->first;
  }
}

}  // namespace
}  // namespace tessera
