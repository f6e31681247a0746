// Every op that regions support, alone, with odd shapes and attributes; and the nodes that they
// refuse.
#include <algorithm>
#include <ostream>

#include "base/tensor/tensors_test.h"
#include "candidate_check.h"

namespace tessera {
namespace {

std::vector<int64_t> any_dims(Dice& dice, int64_t min_rank, int64_t max_rank) {
  std::vector<int64_t> dims;
  for (int64_t axis = dice.whole(min_rank, max_rank); axis > 0; --axis) {
    dims.push_back(dice.whole(1, 9));
  }
  return dims;
}

RandomGraph finish(RandomGraph made, const std::string& op, const std::vector<std::string>& inputs,
                   const Attributes& attributes = {}) {
  made.node("y", op, inputs, attributes);
  return made.ending_in("y");
}

RandomGraph function(Dice& dice, const ops::Registry& registry) {
  static const std::vector<std::string> kOps = {
      "Abs",         "Ceil",      "Elu",      "Erf",       "Exp",  "Floor", "Gelu",
      "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Mish", "Neg",   "Relu",
      "Selu",        "Sigmoid",   "Softplus", "Softsign",  "Tanh"};
  RandomGraph made(registry, 20);
  made.input("x", dice.tensor(any_dims(dice, 0, 6), -8, 8));
  return finish(std::move(made), dice.pick(kOps), {"x"});
}

RandomGraph positive_function(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  made.input("x", dice.tensor(any_dims(dice, 0, 5), 0.1F, 8));
  return finish(std::move(made), dice.pick(std::vector<std::string>{"Log", "Reciprocal", "Sqrt"}),
                {"x"});
}

RandomGraph binary(Dice& dice, const ops::Registry& registry) {
  static const std::vector<std::string> kOps = {"Add", "Div", "Max",   "Mean", "Min",
                                                "Mul", "Pow", "PRelu", "Sub",  "Sum"};
  RandomGraph made(registry, 15);
  const std::string op = dice.pick(kOps);
  const std::vector<int64_t> dims = any_dims(dice, 1, 5);
  std::vector<int64_t> other = dims;
  for (int64_t& dim : other) {
    if (dice.one_in(3)) dim = 1;
  }
  if (dice.one_in(3)) other.erase(other.begin());
  // Divisors, and bases of powers, stay away from zero.
  made.input("a", dice.tensor(dims, op == "Pow" ? 0.2F : -2, 2));
  made.operand(dice, "b", dice.tensor(other, op == "Div" ? 0.3F : -2, 2));
  return finish(std::move(made), op, {"a", "b"});
}

RandomGraph clip(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  made.input("x", dice.tensor(any_dims(dice, 0, 4), -4, 4));
  made.constant("low", floats({}, {-1}));
  made.constant("high", floats({}, {2}));
  if (dice.one_in(3)) return finish(std::move(made), "Clip", {"x", "low"});
  if (dice.one_in(3)) return finish(std::move(made), "Clip", {"x", "", "high"});
  return finish(std::move(made), "Clip", {"x", "low", "high"});
}

RandomGraph reduction(Dice& dice, const ops::Registry& registry) {
  static const std::vector<std::string> kOps = {"ReduceLogSumExp", "ReduceMax",  "ReduceMean",
                                                "ReduceMin",       "ReduceProd", "ReduceSum",
                                                "ReduceSumSquare"};
  const bool has_attribute = dice.one_in(2);
  RandomGraph made(registry, has_attribute ? 12 : 18);
  const std::vector<int64_t> dims = any_dims(dice, 1, 4);
  made.input("x", dice.tensor(dims, -1.5F, 1.5F));
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < static_cast<int64_t>(dims.size()); ++axis) {
    if (dice.one_in(2)) axes.push_back(axis);
  }
  Attributes attributes = attributes_of({{"keepdims", int64_t{dice.one_in(2)}}});
  std::string op = dice.pick(kOps);
  if (has_attribute) {
    if (!axes.empty()) attributes.set("axes", axes);
    return finish(std::move(made), op, {"x"}, attributes);
  }
  attributes.set("noop_with_empty_axes", int64_t{dice.one_in(2)});
  if (dice.one_in(4)) return finish(std::move(made), op, {"x"}, attributes);
  made.constant("axes", ints(axes));
  return finish(std::move(made), op, {"x", "axes"}, attributes);
}

RandomGraph softmax(Dice& dice, const ops::Registry& registry) {
  const bool is_old = dice.one_in(2);
  RandomGraph made(registry, is_old ? 11 : 13);
  std::vector<int64_t> dims = any_dims(dice, 1, 4);
  const int64_t axis = dice.whole(0, static_cast<int64_t>(dims.size()) - 1);
  // The older version normalizes over all following axes too.
  if (is_old) std::fill(dims.begin() + axis + 1, dims.end(), 1);
  made.input("x", dice.tensor(dims, -5, 5));
  return finish(std::move(made), dice.one_in(2) ? "Softmax" : "LogSoftmax", {"x"},
                attributes_of({{"axis", axis}}));
}

RandomGraph slice(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  const std::vector<int64_t> dims = {dice.whole(2, 9), dice.whole(2, 9), dice.whole(2, 9)};
  made.input("x", dice.tensor(dims));
  const int64_t axis = dice.whole(0, 2);
  const int64_t step = dice.pick(std::vector<int64_t>{1, 2, -1, -2});
  made.constant("starts", ints({step > 0 ? dice.whole(0, 1) : int64_t{-1}}));
  made.constant("ends", ints({step > 0 ? int64_t{1000} : int64_t{-1000}}));
  made.constant("axes", ints({axis}));
  made.constant("steps", ints({step}));
  return finish(std::move(made), "Slice", {"x", "starts", "ends", "axes", "steps"});
}

RandomGraph pad(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  const std::vector<int64_t> dims = {dice.whole(2, 5), dice.whole(2, 5), dice.whole(3, 9)};
  made.input("x", dice.tensor(dims));
  const Attributes attributes =
      attributes_of({{"mode", dice.pick(std::vector<std::string>{"constant", "reflect", "edge"})}});
  std::vector<int64_t> pads;
  for (int side = 0; side < 6; ++side) pads.push_back(dice.whole(0, 1));
  made.constant("pads", ints(pads));
  return finish(std::move(made), "Pad", {"x", "pads"}, attributes);
}

RandomGraph move(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  const std::vector<int64_t> dims = {dice.whole(1, 4), 4 * dice.whole(1, 3), 2 * dice.whole(1, 4),
                                     2 * dice.whole(1, 4)};
  made.input("x", dice.tensor(dims));
  Attributes attributes;
  switch (dice.whole(0, 7)) {
    case 0:
      attributes.set("blocksize", int64_t{2});
      attributes.set("mode", std::string(dice.one_in(2) ? "DCR" : "CRD"));
      return finish(std::move(made), "DepthToSpace", {"x"}, attributes);
    case 1:
      attributes.set("blocksize", int64_t{2});
      return finish(std::move(made), "SpaceToDepth", {"x"}, attributes);
    case 2:
      attributes.set("perm", std::vector<int64_t>{2, 0, 3, 1});
      return finish(std::move(made), "Transpose", {"x"}, attributes);
    case 3:
      made.constant("repeats", ints({1, 2, 1, 3}));
      return finish(std::move(made), "Tile", {"x", "repeats"});
    case 4:
      made.constant("shape", ints({0, -1}));
      return finish(std::move(made), "Reshape", {"x", "shape"});
    case 5:
      attributes.set("axis", dice.whole(0, 4));
      return finish(std::move(made), "Flatten", {"x"}, attributes);
    case 6:
      made.constant("axes", ints({0, -1}));
      return finish(std::move(made), "Unsqueeze", {"x", "axes"});
    default:
      made.constant("shape", ints({3, dims[0], dims[1], dims[2], dims[3]}));
      return finish(std::move(made), "Expand", {"x", "shape"});
  }
}

RandomGraph choice(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 16);
  const std::vector<int64_t> dims = {dice.whole(1, 5), dice.whole(1, 9)};
  if (dice.one_in(2)) {
    made.input("table", dice.tensor({7, dice.whole(1, 9)}));
    std::vector<int64_t> rows;
    for (int row = 0; row < 5; ++row) rows.push_back(dice.whole(-7, 6));
    made.input("rows", ints(rows));
    return finish(std::move(made), "Gather", {"table", "rows"});
  }
  std::vector<char> answers;
  for (int64_t index = 0; index < dims[0] * dims[1]; ++index)
    answers.push_back(dice.one_in(2) ? 1 : 0);
  made.input("is", Tensor::copy_of(DataType::Bool, dims, answers.data(), answers.size()));
  made.input("a", dice.tensor(dims));
  made.input("b", dice.tensor({dims[1]}));
  return finish(std::move(made), "Where", {"is", "a", "b"});
}

RandomGraph picture(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  const int64_t channels = dice.pick(std::vector<int64_t>{2, 4, 18});
  const std::vector<int64_t> dims = {dice.whole(1, 2), channels, dice.whole(3, 8),
                                     dice.whole(3, 8)};
  made.input("x", dice.tensor(dims));
  Attributes attributes;
  switch (dice.whole(0, 4)) {
    case 0:
      attributes.set("size", int64_t{3});
      return finish(std::move(made), "LRN", {"x"}, attributes);
    case 1:
      return finish(std::move(made), "GlobalAveragePool", {"x"});
    case 2:
      return finish(std::move(made), "GlobalMaxPool", {"x"});
    case 3:
      attributes.set("kernel_shape", std::vector<int64_t>{3, 2});
      attributes.set("strides", std::vector<int64_t>{2, 1});
      attributes.set("ceil_mode", int64_t{dice.one_in(2)});
      return finish(std::move(made), dice.one_in(2) ? "MaxPool" : "AveragePool", {"x"}, attributes);
    default:
      attributes.set("strides", std::vector<int64_t>{dice.whole(1, 2), dice.whole(1, 2)});
      attributes.set("group", dice.whole(1, 2));
      attributes.set("output_padding", std::vector<int64_t>{0, 0});
      made.constant("w", dice.tensor({channels, dice.whole(1, 5), 3, 3}));
      return finish(std::move(made), "ConvTranspose", {"x", "w"}, attributes);
  }
}

RandomGraph gemm(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  const int64_t rows = dice.whole(1, 9);
  const int64_t inner = dice.whole(1, 70);
  const int64_t columns = dice.whole(1, 40);
  Attributes attributes;
  const bool turns_a = dice.one_in(2);
  const bool turns_b = dice.one_in(2);
  attributes.set("transA", int64_t{turns_a});
  attributes.set("transB", int64_t{turns_b});
  attributes.set("alpha", dice.one_in(2) ? 1.0F : 0.5F);
  attributes.set("beta", dice.one_in(2) ? 1.0F : 2.0F);
  made.input("a", dice.tensor(turns_a ? std::vector{inner, rows} : std::vector{rows, inner}));
  made.operand(dice, "b",
               dice.tensor(turns_b ? std::vector{columns, inner} : std::vector{inner, columns}));
  made.constant("c", dice.tensor({columns}));
  return finish(std::move(made), "Gemm", {"a", "b", "c"}, attributes);
}

RandomGraph recurrence(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 14);
  const bool is_lstm = dice.one_in(2);
  const int64_t gates = is_lstm ? 4 : 3;
  const int64_t hidden = dice.whole(1, 20);
  const int64_t width = dice.whole(1, 20);
  const bool is_both = dice.one_in(3);
  const int64_t directions = is_both ? 2 : 1;
  Attributes attributes = attributes_of({{"hidden_size", hidden}});
  if (is_both) attributes.set("direction", std::string("bidirectional"));
  if (!is_lstm) attributes.set("linear_before_reset", int64_t{dice.one_in(2)});
  made.input("x", dice.tensor({dice.whole(1, 6), dice.whole(1, 3), width}));
  made.constant("w", dice.tensor({directions, gates * hidden, width}));
  made.constant("r", dice.tensor({directions, gates * hidden, hidden}));
  made.constant("b", dice.tensor({directions, 2 * gates * hidden}));
  std::vector<std::string> outputs = {"y", "h"};
  if (is_lstm) outputs.emplace_back("c");
  made.node("n", is_lstm ? "LSTM" : "GRU", {"x", "w", "r", "b"}, outputs, attributes);
  for (const std::string& output : outputs) made.builder.output(output);
  return made;
}

RandomGraph split(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  const int64_t first = dice.whole(1, 5);
  const int64_t second = dice.whole(1, 5);
  made.input("x", dice.tensor({dice.whole(1, 3), first + second, dice.whole(1, 4)}));
  made.constant("sizes", ints({first, second}));
  made.node("n", "Split", {"x", "sizes"}, {"y", "z"}, attributes_of({{"axis", 1}}));
  made.builder.output("y");
  return made.ending_in("z");
}

struct Family {
  const char* name;
  MakeCase make;
  int cases;
  Tolerance tolerance = {};
};

// GoogleTest prints this for a row.
std::ostream& operator<<(std::ostream& stream, const Family& family) {
  return stream << family.name;
}

class OpenvinoOps : public testing::TestWithParam<Family> {};

TEST_P(OpenvinoOps, AreTheReference) {
  const Family& family = GetParam();
  const Totals totals = check_cases("openvino", 81, family.cases, family.make, family.tolerance);
  int64_t inexact = 0;
  for (const auto& [reason, count] : totals.refusals) {
    if (reason.find("is not exact enough") != std::string::npos) inexact += count;
  }
  EXPECT_EQ(totals.answered + inexact, family.cases);
  EXPECT_GE(totals.answered, family.cases / 2);
}

const Tolerance kOfFunctions = {.relative = 1e-5, .of_largest = 1e-5};

INSTANTIATE_TEST_SUITE_P(
    , OpenvinoOps,
    testing::Values(Family{"Function", function, 120, kOfFunctions},
                    Family{"PositiveFunction", positive_function, 30},
                    Family{"Binary", binary, 120, kOfFunctions}, Family{"Clip", clip, 20},
                    Family{"Reduction", reduction, 120, kOfFunctions},
                    Family{"Softmax", softmax, 40, kOfFunctions}, Family{"Slice", slice, 40},
                    Family{"Pad", pad, 40}, Family{"Move", move, 80}, Family{"Choice", choice, 30},
                    Family{"Picture", picture, 60, kOfFunctions}, Family{"Gemm", gemm, 40},
                    Family{"Split", split, 10}, Family{"Recurrence", recurrence, 30, kOfFunctions}),
    [](const auto& row) { return std::string(row.param.name); });

// Ops that the table omits, and the reasons that the backend reports.
TEST(OpenvinoRefusals, SayWhy) {
  struct Row {
    const char* what;
    MakeCase make;
    const char* refusal;
  };
  const Row rows[] = {
      {"an op that is not in the table",
       [](Dice& dice, const ops::Registry& registry) {
         RandomGraph made(registry, 13);
         made.input("x", dice.tensor({3}));
         return finish(std::move(made), "Asinh", {"x"});
       },
       "Asinh: OpenVINO regions do not contain this op"},
      {"float64, which it computes as float32",
       [](Dice&, const ops::Registry& registry) {
         RandomGraph made(registry, 13);
         made.input("x", Tensor::from<double>(DataType::Float64, {1}, std::vector<double>{1}));
         return finish(std::move(made), "Exp", {"x"});
       },
       "Exp: input 0 is not float32"},
      {"int64, which it computes as int32",
       [](Dice&, const ops::Registry& registry) {
         RandomGraph made(registry, 13);
         made.input("x", ints({1}));
         return finish(std::move(made), "Abs", {"x"});
       },
       "Abs: input 0 is not float32"},
      {"an old softmax over several axes, of which it would take the first one",
       [](Dice& dice, const ops::Registry& registry) {
         RandomGraph made(registry, 11);
         made.input("x", dice.tensor({2, 3}));
         return finish(std::move(made), "Softmax", {"x"}, attributes_of({{"axis", 0}}));
       },
       "Softmax: it computes no softmax over several axes"},
      {"a sum of magnitudes that it leaves out over axes of one element",
       [](Dice& dice, const ops::Registry& registry) {
         RandomGraph made(registry, 13);
         made.input("x", dice.tensor({1}, -1, -0.5F));
         return finish(std::move(made), "ReduceL1", {"x"});
       },
       "ReduceL1: OpenVINO regions do not contain this op"},
      {"axes that are not known before running",
       [](Dice& dice, const ops::Registry& registry) {
         RandomGraph made(registry, 13);
         made.input("x", dice.tensor({1, 3}));
         made.input("shape", ints({3}));
         return finish(std::move(made), "Reshape", {"x", "shape"});
       },
       "Reshape: input 1 is not a constant"},
  };
  for (const Row& row : rows) {
    const Totals totals = check_cases("openvino", 82, 1, row.make);
    EXPECT_EQ(totals.answered, 0) << row.what;
    ASSERT_EQ(totals.refusals.size(), 1U) << row.what;
    EXPECT_EQ(totals.refusals.begin()->first, row.refusal) << row.what;
  }
}

}  // namespace
}  // namespace tessera
