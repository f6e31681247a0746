// LSTM of both directions, with and without what may be left out.
#include "candidate_check.h"

namespace tessera {
namespace {

RandomGraph lstm(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 14);
  const std::vector<std::string> names = {"forward", "reverse", "bidirectional"};
  const std::string direction = dice.pick(names);
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  const int64_t steps = dice.whole(1, 6);
  const int64_t batch = dice.whole(1, 4);
  const std::vector<int64_t> sizes = {1, 3, 8, 16, 19, 33};
  const int64_t features = dice.pick(sizes);
  const int64_t hidden = dice.pick(sizes);
  made.input("x", dice.tensor({steps, batch, features}));
  made.constant("w", dice.tensor({directions, 4 * hidden, features}, -0.5F, 0.5F));
  made.constant("r", dice.tensor({directions, 4 * hidden, hidden}, -0.5F, 0.5F));
  std::vector<std::string> inputs = {"x", "w", "r", "", "", "", ""};
  if (!dice.one_in(3)) {
    made.constant("b", dice.tensor({directions, 8 * hidden}));
    inputs[3] = "b";
  }
  if (dice.one_in(3)) {
    const std::vector<int32_t> lengths(static_cast<size_t>(batch), static_cast<int32_t>(steps));
    made.constant("lengths", Tensor::from<int32_t>(DataType::Int32, {batch}, lengths));
    inputs[4] = "lengths";
  }
  const std::vector<int64_t> state = {directions, batch, hidden};
  if (dice.one_in(2)) {
    made.operand(dice, "h", dice.tensor(state));
    inputs[5] = "h";
  }
  if (dice.one_in(2)) {
    if (inputs[5].empty() || dice.one_in(2))
      made.operand(dice, inputs[6] = "c", dice.tensor(state));
    if (inputs[6].empty()) inputs[6] = "h";
  }
  Attributes attributes;
  attributes.set("direction", direction);
  attributes.set("hidden_size", hidden);
  std::vector<std::string> outputs = {"y", "y_h", "y_c"};
  const int64_t wanted = dice.whole(1, 7);
  for (size_t index = 0; index < outputs.size(); ++index) {
    if ((wanted >> index & 1) == 0) outputs[index] = "";
  }
  made.builder.node("lstm", "LSTM", inputs, outputs, attributes);
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

TEST(OnednnRecurrences, Lstm) {
  const Totals totals = check_cases("onednn", 41, 100, lstm);
  EXPECT_EQ(totals.answered, 100);
  EXPECT_EQ(totals.largest, 2U);
}

}  // namespace
}  // namespace tessera
