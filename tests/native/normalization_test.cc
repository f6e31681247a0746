// Normalization of rows and channels, in every layout, and as decomposed by exporters.

#include <string>
#include <vector>

#include "any_tensor.h"
#include "base/tensor/tensors_test.h"
#include "each_target.h"
#include "random_nodes.h"

namespace tessera {
namespace {

using Sizes = std::vector<int64_t>;
using Names = std::vector<std::string>;

// In a row of one or two numbers, which are near their mean, few digits are significant.
constexpr Tolerance kRowTolerance = {.relative = 1e-4, .of_largest = 1e-4};

Sizes picture(Dice& dice, int64_t min_axes) {
  const Sizes channels = {1, 2, 3, 5, 8, 13, 16, 17, 24, 32, 35, 70};
  Sizes dims = {dice.whole(1, 3), dice.pick(channels)};
  const int64_t axes = dice.whole(min_axes, 3);
  for (int64_t axis = 0; axis < axes; ++axis) dims.push_back(dice.whole(1, axes > 1 ? 9 : 70));
  return dims;
}

RandomGraph batch_normalization(Dice& dice, const ops::Registry& registry) {
  const Sizes dims = picture(dice, 0);
  const std::string variance = dice.one_in(8) ? "scale" : "variance";
  return random_batch_normalization(dice, registry, dims, variance);
}

RandomGraph layer_normalization(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 17);
  Sizes dims = picture(dice, 0);
  if (dice.one_in(10)) dims = {dice.whole(1, 3), dice.whole(600, 5000)};
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = dice.whole(0, rank - 1);
  Sizes row(dims.begin() + axis, dims.end());
  // Numbers far from zero, and numbers whose squares overflow or underflow in float32.
  const float mean = dice.one_in(4) ? 100 : 1;
  const float size = dice.one_in(20) ? 1e25F : 1;
  made.input("x", dice.tensor(dims, (mean - 4) * size, (mean + 4) * size));
  if (dice.one_in(3)) row.insert(row.begin(), 1);
  if (row.size() > dims.size()) row.erase(row.begin());
  made.operand(dice, "scale", dice.tensor(row, 0.5F, 2));
  const bool has_shift = !dice.one_in(3);
  if (has_shift) made.operand(dice, "shift", dice.tensor(row));
  const Attributes attributes = attributes_of({{"axis", dice.one_in(2) ? axis : axis - rank}});
  Names outputs = {"y"};
  if (dice.one_in(4) && size == 1) outputs.insert(outputs.end(), {"mean", "inverse"});
  made.node("y", "LayerNormalization",
            has_shift ? Names{"x", "scale", "shift"} : Names{"x", "scale"}, outputs, attributes);
  for (const std::string& output : outputs) made.builder.output(output);
  return made;
}

// Appends the mean of `from` over the last `axes` axes.
void append_mean(RandomGraph& made, const std::string& name, const std::string& from,
                 int64_t axes) {
  Sizes named;
  for (int64_t axis = 1; axis <= axes; ++axis) named.push_back(-axis);
  made.node(name, "ReduceMean", {from}, attributes_of({{"axes", named}}));
}

Names either_way(Dice& dice, const std::string& left, const std::string& right) {
  return dice.one_in(2) ? Names{left, right} : Names{right, left};
}

// "q" as `centred` by "s", in one of three forms.
void append_quotient(Dice& dice, RandomGraph& made, const std::string& centred) {
  const int64_t division = dice.whole(0, 2);
  if (division == 0) {
    made.node("q", "Div", {centred, "s"});
  } else {
    made.node("r", division == 1 ? "Reciprocal" : "Div",
              division == 1 ? Names{"s"} : Names{"one", "s"});
    made.node("q", "Mul", either_way(dice, centred, "r"));
  }
}

RandomGraph written_out(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  const Sizes dims = picture(dice, 0);
  const int64_t axes = dice.whole(1, static_cast<int64_t>(dims.size()) - 1);
  const Sizes row(dims.end() - axes, dims.end());
  const auto number = [&](const std::string& name, float value) {
    made.constant(name, floats({}, {value}));
  };
  number("two", 2);
  number("one", 1);
  number("epsilon", 1e-3F);
  made.input("x", dice.tensor(dims, -3, 5));
  std::string centred = "x";
  std::string squared = "x";
  if (!dice.one_in(3)) {
    append_mean(made, "m", "x", axes);
    made.node("d", "Sub", {"x", "m"}, {centred = squared = "d"});
    if (dice.one_in(2)) made.node("c", "Sub", {"x", "m"}, {squared = "c"});
  }
  const bool is_power = dice.one_in(2);
  made.node("p", is_power ? "Pow" : "Mul", {squared, is_power ? "two" : squared});
  append_mean(made, "v", "p", axes);
  made.node("e", "Add", either_way(dice, "v", "epsilon"));
  made.node("s", "Sqrt", {"e"});
  append_quotient(dice, made, centred);
  std::string last = "q";
  const int64_t tail = dice.whole(0, 2);
  if (tail > 0) {
    made.operand(dice, "scale", dice.tensor(row, 0.5F, 2));
    made.node("g", "Mul", either_way(dice, "q", "scale"), {last = "g"});
  }
  if (tail > 1) {
    made.operand(dice, "shift", dice.tensor(row));
    made.node("y", "Add", either_way(dice, "g", "shift"), {last = "y"});
  }
  return made.ending_in(last);
}

// Relu, SiLU or nothing after "y".
void append_activation(Dice& dice, RandomGraph& made) {
  const int64_t kind = dice.whole(0, 2);
  if (kind == 1) made.node("z", "Relu", {"y"});
  if (kind == 2) {
    made.node("g", "Sigmoid", {"y"});
    made.node("z", "Mul", {"y", "g"});
  }
  made.builder.output(kind == 0 ? "y" : "z");
}

RandomGraph groups(Dice& dice, const ops::Registry& registry) {
  const bool is_instance = dice.one_in(2);
  const bool is_per_channel = is_instance || dice.one_in(2);
  RandomGraph made(registry, is_per_channel ? 21 : 18);
  Sizes dims = picture(dice, 0);
  // More than one element for each mean.
  if (dims.size() > 3) dims.resize(3);
  dims.push_back(dims.size() < 3 && dice.one_in(5) ? dice.whole(600, 5000) : dice.whole(4, 20));
  Attributes attributes;
  int64_t parameters = dims[1];
  if (!is_instance) {
    const int64_t count = dice.whole(1, 4);
    dims[1] = count * dice.whole(1, 5);
    parameters = is_per_channel ? dims[1] : count;
    attributes.set("num_groups", count);
  }
  made.input("x", dice.tensor(dims, -3, 5));
  made.operand(dice, "scale", dice.tensor({parameters}, 0.5F, 2));
  made.operand(dice, "shift", dice.tensor({parameters}));
  made.node("y", is_instance ? "InstanceNormalization" : "GroupNormalization",
            {"x", "scale", "shift"}, attributes);
  append_activation(dice, made);
  return made;
}

// GroupNormalization as PyTorch's exporter writes it.
RandomGraph written_groups(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 17);
  const int64_t groups = dice.whole(1, 4);
  const int64_t channels = groups * dice.whole(1, 9);
  const Sizes dims = {dice.whole(1, 2), channels, dice.whole(2, 12), dice.whole(3, 20)};
  const float mean = dice.one_in(3) ? 1000 : 1;
  made.input("x", dice.tensor(dims, mean - 4, mean + 4));
  // Lists for these sizes alone, or for others too.
  made.constant("grouped", integer_list({dice.one_in(2) ? 0 : dims[0], groups, -1}));
  made.constant("dims", integer_list(dice.one_in(2) ? Sizes{0, channels, dims[2], -1} : dims));
  made.operand(dice, "s", dice.tensor({groups}, 0.5F, 2));
  made.operand(dice, "t", dice.tensor({groups}));
  const Sizes parameters = dice.one_in(3) ? Sizes{1, channels, 1, 1} : Sizes{channels, 1, 1};
  made.operand(dice, "scale", dice.tensor(parameters, 0.5F, 2));
  made.operand(dice, "shift", dice.tensor(parameters));
  made.node("r", "Reshape", {"x", "grouped"});
  made.node("n", "InstanceNormalization", {"r", "s", "t"});
  made.node("b", "Reshape", {"n", "dims"});
  made.node("m", "Mul", {"b", "scale"});
  made.node("y", "Add", dice.one_in(2) ? Names{"m", "shift"} : Names{"shift", "m"});
  append_activation(dice, made);
  return made;
}

RandomGraph local_response(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  made.input("x", dice.tensor(picture(dice, 0), -3, 3));
  Attributes attributes =
      attributes_of({{"size", dice.whole(1, 8)}, {"alpha", dice.number(1e-4F, 0.5F)}});
  const std::vector<float> exponents = {0.5F, 0.75F, 1, 0.6F};
  if (dice.one_in(2)) attributes.set("beta", dice.pick(exponents));
  if (dice.one_in(2)) attributes.set("bias", dice.number(0.5F, 2));
  made.node("y", "LRN", {"x"}, attributes);
  return made.ending_in("y");
}

// Results of more than 8 MiB are streamed past the caches, in pieces of whole rows, parts of long
// rows, and parts of channels.
RandomGraph large_normalization(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 17);
  const Names ops = {"LayerNormalization", "InstanceNormalization", "BatchNormalization"};
  const std::string op = dice.pick(ops);
  const int64_t length = dice.pick(Sizes{7, 197, 1031, 9001});
  constexpr int64_t kElements = int64_t{9} << 18;
  const bool is_rows = op == "LayerNormalization";
  const int64_t channels = is_rows ? length : dice.whole(2, 40);
  const Sizes dims = is_rows ? Sizes{kElements / length + 1, length}
                             : Sizes{kElements / (channels * length) + 1, channels, length};
  made.input("x", dice.tensor(dims, -3, 5));
  made.operand(dice, "scale", dice.tensor({channels}, 0.5F, 2));
  made.operand(dice, "shift", dice.tensor({channels}));
  Names inputs = {"x", "scale", "shift"};
  if (op == "BatchNormalization") {
    made.operand(dice, "mean", dice.tensor({channels}));
    made.operand(dice, "variance", dice.tensor({channels}, 0.1F, 4));
    inputs.insert(inputs.end(), {"mean", "variance"});
  }
  made.node("y", op, inputs);
  return made.ending_in("y");
}

TEST(NativeNormalization, PastTheCaches) {
  EXPECT_GE(check_each_target(126, 30, large_normalization, kRowTolerance).answered, 30);
}
TEST(NativeNormalization, BatchNormalization) {
  expect_answers(check_each_target(121, 1000, batch_normalization), 1000, 2);
}
TEST(NativeNormalization, LayerNormalization) {
  EXPECT_GE(check_each_target(122, 1200, layer_normalization, kRowTolerance).answered, 1200);
}
TEST(NativeNormalization, AsExportersWriteIt) {
  expect_answers(check_each_target(123, 1200, written_out, kRowTolerance), 1200, 11);
}
TEST(NativeNormalization, InstancesAndGroups) {
  EXPECT_GE(check_each_target(124, 800, groups, kRowTolerance).answered, 800);
}
TEST(NativeNormalization, GroupsAsExportersWriteThem) {
  expect_answers(check_each_target(127, 400, written_groups, kRowTolerance), 400, 7);
}
TEST(NativeNormalization, LocalResponse) {
  EXPECT_GE(check_each_target(125, 600, local_response).answered, 600);
}

}  // namespace
}  // namespace tessera
