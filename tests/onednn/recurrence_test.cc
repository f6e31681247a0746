// LSTM, GRU and RNN of both directions, with and without what may be left out; what is refused, and
// why.
#include <algorithm>
#include <cmath>

#include "candidate_check.h"

namespace tessera {
namespace {

struct Recurrent {
  const char* op = "";
  int64_t gates = 1;
  size_t states = 1;
};

constexpr Recurrent kLstm = {"LSTM", 4, 2};
constexpr Recurrent kGru = {"GRU", 3};
constexpr Recurrent kRnn = {"RNN", 1};

struct Sizes {
  int64_t directions = 1;
  int64_t steps = 1;
  int64_t batch = 1;
  int64_t features = 1;
  int64_t hidden = 1;
};

Sizes random_sizes(Dice& dice) {
  const std::vector<int64_t> sizes = {1, 3, 8, 16, 19, 33};
  return {dice.whole(1, 2), dice.whole(1, 6), dice.whole(1, 4), dice.pick(sizes), dice.pick(sizes)};
}

// Whatever may be left out, is so now and then.
std::vector<std::string> random_inputs(Dice& dice, RandomGraph& made, const Recurrent& recurrent,
                                       const Sizes& sizes) {
  const int64_t width = recurrent.gates * sizes.hidden;
  made.input("x", dice.tensor({sizes.steps, sizes.batch, sizes.features}));
  made.constant("w", dice.tensor({sizes.directions, width, sizes.features}, -0.5F, 0.5F));
  made.constant("r", dice.tensor({sizes.directions, width, sizes.hidden}, -0.5F, 0.5F));
  std::vector<std::string> inputs = {"x", "w", "r", "", "", ""};
  if (!dice.one_in(3)) {
    made.constant("b", dice.tensor({sizes.directions, 2 * width}));
    inputs[3] = "b";
  }
  if (dice.one_in(3)) {
    const std::vector<int32_t> lengths(static_cast<size_t>(sizes.batch),
                                       static_cast<int32_t>(sizes.steps));
    made.constant("lengths", Tensor::from<int32_t>(DataType::Int32, {sizes.batch}, lengths));
    inputs[4] = "lengths";
  }
  const std::vector<int64_t> state = {sizes.directions, sizes.batch, sizes.hidden};
  if (dice.one_in(2)) {
    made.operand(dice, "h", dice.tensor(state));
    inputs[5] = "h";
  }
  if (recurrent.states == 2 && dice.one_in(2)) {
    // Both states may be one value.
    inputs.emplace_back(inputs[5].empty() || dice.one_in(2) ? "c" : "h");
    if (inputs[6] == "c") made.operand(dice, "c", dice.tensor(state));
  }
  return inputs;
}

Attributes random_attributes(Dice& dice, const Recurrent& recurrent, const Sizes& sizes) {
  Attributes attributes;
  const bool is_reverse = dice.one_in(2);
  attributes.set("direction", sizes.directions == 2 ? "bidirectional"
                              : is_reverse          ? "reverse"
                                                    : "forward");
  attributes.set("hidden_size", sizes.hidden);
  const auto directions = static_cast<size_t>(sizes.directions);
  const std::string op = recurrent.op;
  if (op == "GRU") attributes.set("linear_before_reset", dice.whole(0, 1));
  if (op == "RNN" && !dice.one_in(4)) {
    const std::vector<std::string> names = {"Tanh", "Relu", "Sigmoid"};
    attributes.set("activations", std::vector<std::string>(directions, dice.pick(names)));
  }
  if (op == "GRU" && dice.one_in(3)) {
    std::vector<std::string> names = {"Sigmoid", "tanh", "Sigmoid", "Tanh"};
    names.resize(2 * directions);
    attributes.set("activations", names);
  }
  return attributes;
}

RandomGraph recurrence(Dice& dice, const ops::Registry& registry, const Recurrent& recurrent) {
  RandomGraph made(registry, 14);
  const Sizes sizes = random_sizes(dice);
  const std::vector<std::string> inputs = random_inputs(dice, made, recurrent, sizes);
  std::vector<std::string> outputs = {"y", "y_h", "y_c"};
  outputs.resize(1 + recurrent.states);
  const int64_t wanted = dice.whole(1, (1 << outputs.size()) - 1);
  for (size_t index = 0; index < outputs.size(); ++index) {
    if ((wanted >> index & 1) == 0) outputs[index] = "";
  }
  made.builder.node("node", recurrent.op, inputs, outputs,
                    random_attributes(dice, recurrent, sizes));
  if (!outputs[0].empty() && dice.one_in(2)) {
    Attributes order;
    order.set("perm", std::vector<int64_t>{0, 2, 1, 3});
    made.builder.node("side", "Transpose", {"y"}, {"side"}, order);
    outputs[0] = "side";
  }
  for (const std::string& output : outputs) {
    if (!output.empty()) made.builder.output(output);
  }
  return made;
}

class OnednnRecurrences : public testing::TestWithParam<Recurrent> {};

TEST_P(OnednnRecurrences, AreThoseOfTheReference) {
  const Totals totals =
      check_cases("onednn", 41, 250, [&](Dice& dice, const ops::Registry& registry) {
        return recurrence(dice, registry, GetParam());
      });
  EXPECT_EQ(totals.answered, 250);
  EXPECT_EQ(totals.largest, 2U);
}

INSTANTIATE_TEST_SUITE_P(Ops, OnednnRecurrences, testing::Values(kLstm, kGru, kRnn),
                         [](const auto& tested) { return std::string(tested.param.op); });

// A node of one unit with what the attributes and inputs say; "steps" has wrong lengths.
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
      {kLstm, {}, {"x", "w", "r", "", "", "", "", "holes"}, "peepholes"},
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
