#include "random_recurrence.h"

#include <string>
#include <vector>

#include "graph/attributes_test.h"

namespace tessera {
namespace {

struct Sizes {
  int64_t directions = 1;
  int64_t steps = 1;
  int64_t batch = 1;
  int64_t features = 1;
  int64_t hidden = 1;
};

Sizes random_sizes(Dice& dice, const RecurrenceLimits& limits) {
  const std::vector<int64_t> sizes = {1, 3, 8, 16, 19, 33};
  return {dice.whole(1, 2), dice.whole(1, limits.steps), dice.whole(1, limits.batch),
          dice.pick(sizes), dice.pick(sizes)};
}

// Optional inputs are sometimes omitted.
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
    // Both initial states may be the same value.
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

}  // namespace

RandomGraph random_recurrence(Dice& dice, const ops::Registry& registry, const Recurrent& recurrent,
                              const RecurrenceLimits& limits) {
  RandomGraph made(registry, 14);
  const Sizes sizes = random_sizes(dice, limits);
  const std::vector<std::string> inputs = random_inputs(dice, made, recurrent, sizes);
  std::vector<std::string> outputs = {"y", "y_h", "y_c"};
  outputs.resize(1 + recurrent.states);
  const int64_t wanted = dice.whole(1, (1 << outputs.size()) - 1);
  for (size_t index = 0; index < outputs.size(); ++index) {
    if ((wanted >> index & 1) == 0) outputs[index] = "";
  }
  made.node("node", recurrent.op, inputs, outputs, random_attributes(dice, recurrent, sizes));
  if (!outputs[0].empty() && dice.one_in(2)) {
    made.node("side", "Transpose", {"y"}, attributes_of({{"perm", {0, 2, 1, 3}}}));
    outputs[0] = "side";
  }
  for (const std::string& output : outputs) {
    if (!output.empty()) made.builder.output(output);
  }
  return made;
}

}  // namespace tessera
