// Unary functions and arithmetic, in every layout, with broadcasting.

#include "base/tensor/tensors_test.h"
#include "candidate_check.h"

namespace tessera {
namespace {

const std::vector<int64_t> kAxisSizes = {1, 2, 3, 5, 7, 8, 9, 13, 16, 17, 19, 33};

std::vector<int64_t> dims_of_rank(Dice& dice, int64_t rank) {
  std::vector<int64_t> dims;
  for (int64_t axis = 0; axis < rank; ++axis) dims.push_back(dice.pick(kAxisSizes));
  if (rank > 3) dims[0] = dice.whole(1, 2);
  return dims;
}

struct Function {
  const char* op;
  float low = -4;
  float high = 4;
};

Attributes attributes_for(Dice& dice, const std::string& op) {
  Attributes attributes;
  if (op == "LeakyRelu" || op == "HardSigmoid") {
    attributes.set("alpha", dice.number(0.1F, 1.5F));
  }
  return attributes;
}

RandomGraph function(Dice& dice, const ops::Registry& registry) {
  static const std::vector<Function> kFunctions = {
      {"Abs"},       {"Exp"},    {"HardSigmoid"},      {"HardSwish"},
      {"LeakyRelu"}, {"Neg"},    {"Reciprocal", 0.2F}, {"Relu"},
      {"Round"},     {"Sqrt", 0}};
  RandomGraph made(registry, 24);
  const Function& chosen = dice.pick(kFunctions);
  made.input("x", dice.tensor(dims_of_rank(dice, dice.whole(0, 5)), chosen.low, chosen.high));
  made.node("y", chosen.op, {"x"}, attributes_for(dice, chosen.op));
  return made.ending_in("y");
}

RandomGraph clip(Dice& dice, const ops::Registry& registry) {
  const bool is_old = dice.one_in(3);
  RandomGraph made(registry, is_old ? 10 : 13);
  made.input("x", dice.tensor(dims_of_rank(dice, dice.whole(1, 4)), -4, 4));
  const float low = dice.number(-3, 1);
  const float high = dice.number(low, 3);
  if (is_old) {
    Attributes attributes = attributes_of({{"min", low}});
    if (dice.one_in(2)) attributes.set("max", high);
    made.node("y", "Clip", {"x"}, attributes);
  } else {
    const bool has_low = !dice.one_in(3);
    if (has_low) made.constant("low", floats({}, {low}));
    made.constant("high", floats({}, {high}));
    made.node("y", "Clip", {"x", has_low ? "low" : "", "high"});
  }
  return made.ending_in("y");
}

RandomGraph with_number(Dice& dice, const ops::Registry& registry) {
  static const std::vector<std::string> kOps = {"Add", "Sub", "Mul", "Div", "Max", "Min", "Pow"};
  RandomGraph made(registry, 15);
  const std::string& op = dice.pick(kOps);
  made.input("x", dice.tensor(dims_of_rank(dice, dice.whole(1, 4)), 0.25F, 3));
  const std::vector<float> numbers = {2, 0.25F, 3, -1.5F, 1};
  const float number = dice.pick(numbers);
  const std::vector<int64_t> dims(static_cast<size_t>(dice.whole(0, 1)), 1);
  made.constant("c", floats(dims, {number}));
  // A quotient of a constant would need a product with reciprocals.
  const bool is_swapped = op != "Pow" && op != "Div" && dice.one_in(2);
  made.node("y", op,
            is_swapped ? std::vector<std::string>{"c", "x"} : std::vector<std::string>{"x", "c"});
  return made.ending_in("y");
}

RandomGraph same_shape(Dice& dice, const ops::Registry& registry) {
  static const std::vector<std::string> kOps = {"Add", "Sub", "Mul", "Div", "Max", "Min", "Sum"};
  RandomGraph made(registry, 20);
  const std::vector<int64_t> dims = dims_of_rank(dice, dice.whole(1, 5));
  const std::string& op = dice.pick(kOps);
  std::vector<std::string> inputs;
  const int64_t most = op == "Sum" || op == "Max" || op == "Min" ? 4 : 2;
  const int64_t count = dice.whole(2, most);
  for (int64_t index = 0; index < count; ++index) {
    inputs.push_back("x" + std::to_string(index));
    made.operand(dice, inputs.back(), dice.tensor(dims, 0.5F, 2));
  }
  if (dice.one_in(8)) inputs.back() = inputs.front();
  made.node("y", op, inputs);
  std::string last = "y";
  if (dice.one_in(2)) {
    made.node("z", dice.one_in(2) ? "Relu" : "Sigmoid", {"y"}, {last = "z"});
  }
  if (dice.one_in(3)) {
    made.input("w", dice.tensor(dims));
    made.node("v", "Mul", {last, "w"});
    last = "v";
  }
  return made.ending_in(last);
}

RandomGraph broadcast(Dice& dice, const ops::Registry& registry) {
  static const std::vector<std::string> kOps = {"Add", "Sub", "Mul", "Div", "Max", "Min"};
  RandomGraph made(registry, 20);
  const std::vector<int64_t> dims = dims_of_rank(dice, dice.whole(1, 5));
  const auto shrunk = [&](std::vector<int64_t> from) {
    const int64_t kind = dice.whole(0, 2);
    if (kind == 0 && from.size() >= 3) {  // per channel
      from.erase(from.begin());
      std::fill(from.begin() + 1, from.end(), 1);
      return from;
    }
    for (int64_t& dim : from) dim = dice.one_in(2) ? 1 : dim;
    if (kind == 1 && from.size() > 1) from.erase(from.begin());
    return from;
  };
  const std::string& op = dice.pick(kOps);
  // A dividend that is broadcast would need a product with reciprocals.
  const bool is_swapped = op != "Div" && dice.one_in(3);
  const std::vector<int64_t> small = shrunk(dims);
  made.operand(dice, "a", dice.tensor(is_swapped ? small : dims, 0.5F, 2));
  made.operand(dice, "b", dice.tensor(is_swapped ? dims : small, 0.5F, 2));
  made.node("y", op, {"a", "b"});
  std::string last = "y";
  if (dice.one_in(2)) {
    made.constant("c", dice.tensor(shrunk(dims), 0.5F, 2));
    made.node("z", dice.pick(kOps), {"y", "c"}, {last = "z"});
  }
  if (dice.one_in(2)) made.node("w", "Relu", {last}), last = "w";
  return made.ending_in(last);
}

// Functions that models compose of several ops.
RandomGraph composite(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 17);
  made.input("x", dice.tensor(dims_of_rank(dice, dice.whole(1, 5)), -4, 4));
  GraphBuilder& builder = made.builder;
  builder.node("a", "HardSigmoid", {"x"});
  builder.node("y", "Mul", {"x", "a"});
  builder.node("z", "Neg", {"y"}).output("z");
  return made;
}

// The reason for which a graph of one node is refused.
std::string refusal_of(const std::string& op, const Attributes& attributes,
                       const std::map<std::string, Tensor>& constants, int version = 24) {
  const Totals totals =
      check_cases("onednn", 17, 1, [&](Dice& dice, const ops::Registry& registry) {
        RandomGraph made(registry, version);
        made.input("x", dice.tensor({2, 3, 5, 7}));
        std::vector<std::string> inputs = {"x"};
        for (const auto& [name, value] : constants) {
          made.constant(name, value);
          inputs.push_back(name);
        }
        made.node("y", op, inputs, attributes);
        return made.ending_in("y");
      });
  return totals.refusals.empty() ? "" : totals.refusals.begin()->first;
}

TEST(OnednnElementwise, Functions) {
  EXPECT_EQ(check_cases("onednn", 11, 300, function).answered, 300);
}
TEST(OnednnElementwise, Clip) { EXPECT_EQ(check_cases("onednn", 12, 60, clip).answered, 60); }
TEST(OnednnElementwise, Numbers) {
  EXPECT_EQ(check_cases("onednn", 13, 100, with_number).answered, 100);
}
TEST(OnednnElementwise, SameShape) {
  EXPECT_EQ(check_cases("onednn", 14, 200, same_shape).answered, 200);
}
TEST(OnednnElementwise, Broadcast) {
  EXPECT_GE(check_cases("onednn", 15, 250, broadcast).answered, 245);
}
TEST(OnednnElementwise, Composites) {
  EXPECT_EQ(check_cases("onednn", 16, 60, composite).largest, 2U);
}

TEST(OnednnElementwise, FunctionsThatLoseDigitsAreRefused) {
  const Attributes by_tanh = attributes_of({{"approximate", "tanh"}});
  const Attributes steep = attributes_of({{"alpha", 1.702F}});
  const std::pair<const char*, Attributes> functions[] = {
      {"Celu", {}}, {"Elu", {}},      {"Gelu", {}},     {"Gelu", by_tanh}, {"Log", {}},
      {"Mish", {}}, {"Softplus", {}}, {"Swish", steep}, {"Swish", {}},     {"Sigmoid", {}}};
  for (const auto& [op, attributes] : functions) {
    EXPECT_THAT(refusal_of(op, attributes, {}), HasSubstr("is not exact enough")) << op;
  }
}

TEST(OnednnElementwise, PowersThatAreNoSquareRootsAreRefused) {
  const auto number = [](float value) { return floats({}, {value}); };
  EXPECT_THAT(refusal_of("Pow", {}, {{"e", number(0.5F)}}), HasSubstr("square root"));
  const Tensor odd = ints({}, {16777217});
  EXPECT_THAT(refusal_of("Pow", {}, {{"e", odd}}), HasSubstr("exponents of float32"));
  EXPECT_EQ(refusal_of("Pow", {}, {{"e", number(3)}}), "");
}

}  // namespace
}  // namespace tessera
