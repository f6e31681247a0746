// MatMul and Gemm of odd sizes, alone and with a following sum and activation.

#include <string>
#include <utility>
#include <vector>

#include "any_tensor.h"
#include "each_target.h"
#include "random_nodes.h"

namespace tessera {
namespace {

using Sizes = std::vector<int64_t>;

int64_t size(Dice& dice) {
  const Sizes sizes = {1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 33, 48, 64, 65, 100, 130};
  return dice.pick(sizes);
}

std::string number(RandomGraph& made, const std::string& name, float value) {
  Tensor tensor(DataType::Float32, Sizes{});
  tensor.mutable_as<float>()[0] = value;
  made.constant(name, std::move(tensor));
  return name;
}

// Gelu of `x` as exporters write it.
std::string append_gelu(Dice& dice, RandomGraph& made, const std::string& x) {
  GraphBuilder& builder = made.builder;
  const std::string half = number(made, "half", 0.5F);
  const std::string one = number(made, "one", 1);
  if (dice.one_in(2)) {
    const bool divides = dice.one_in(2);
    const std::string root = number(made, "root", divides ? 1.41421356F : 0.70710678F);
    builder.node("scaled", divides ? "Div" : "Mul", {x, root});
    builder.node("erf", "Erf", {"scaled"}, {"inner"});
  } else {
    builder.node("power", "Pow", {x, number(made, "three", 3)});
    builder.node("small", "Mul", {"power", number(made, "cube", 0.044715F)});
    builder.node("both", "Add", {x, "small"});
    builder.node("scaled", "Mul", {"both", number(made, "factor", 0.79788456F)});
    builder.node("tanh", "Tanh", {"scaled"}, {"inner"});
  }
  builder.node("above", "Add", {"inner", one});
  if (dice.one_in(2)) {
    builder.node("whole", "Mul", {x, "above"});
    builder.node("gelu", "Mul", {"whole", half});
  } else {
    builder.node("halved", "Mul", {x, half});
    builder.node("gelu", "Mul", {"halved", "above"});
  }
  return "gelu";
}

// Appends a sum, an activation, both or nothing; returns the name of the last value.
std::string append_tail(Dice& dice, RandomGraph& made, std::string last, const Sizes& dims) {
  if (dice.one_in(2)) {
    Sizes operand = dims;
    const int64_t kind = dice.whole(0, 3);
    if (kind == 0 && !dims.empty()) operand = {dims.back()};
    if (kind == 1) operand = Sizes(dice.one_in(2) ? 0 : 1, 1);
    if (kind == 2) {
      for (int64_t& dim : operand) dim = dice.one_in(2) ? 1 : dim;
    }
    made.operand(dice, "o", dice.tensor(operand));
    made.node(
        "sum", "Add",
        dice.one_in(2) ? std::vector<std::string>{"o", last} : std::vector<std::string>{last, "o"});
    last = "sum";
  }
  switch (dice.whole(0, 5)) {
    case 0:
    case 1:
      made.node("relu", "Relu", {last});
      return "relu";
    case 2:
      made.node("sigmoid", "Sigmoid", {last});
      made.node("silu", "Mul", {last, "sigmoid"});
      return "silu";
    case 3:
      return append_gelu(dice, made, last);
    default:
      return last;
  }
}

RandomGraph mat_mul(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 20);
  const int64_t rows = size(dice);
  const int64_t depth = dice.one_in(40) ? 0 : dice.one_in(12) ? dice.whole(500, 3000) : size(dice);
  const int64_t columns = size(dice);
  const int64_t batch_axes = dice.one_in(2) ? 0 : dice.whole(1, 3);
  const auto [left, right, result] =
      random_mat_mul_shapes(dice, rows, depth, columns, batch_axes, 3);
  // Sums near zero have few significant digits.
  made.input("a", dice.tensor(left, -0.5F, 1));
  made.operand(dice, "b", dice.tensor(right, -0.5F, 1));
  made.node("product", "MatMul", {"a", "b"});
  return made.ending_in(append_tail(dice, made, "product", result));
}

// Large enough for products of quarters: even and odd halves of rows and columns.
RandomGraph large_matmul(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 20);
  const int64_t rows = dice.whole(60, 140);
  const int64_t depth = dice.whole(250, 330);
  const int64_t columns = dice.whole(250, 600);
  made.input("a", dice.tensor({rows, depth}, -0.5F, 1));
  const bool is_turned = dice.one_in(3);
  const Sizes right = is_turned ? Sizes{columns, depth} : Sizes{depth, columns};
  made.constant("b", dice.tensor(right, -0.5F, 1));
  if (is_turned) {
    const Attributes attributes = attributes_of({{"transB", 1}});
    std::vector<std::string> inputs = {"a", "b"};
    if (dice.one_in(2)) {
      made.operand(dice, "c", dice.tensor({columns}));
      inputs.emplace_back("c");
    }
    made.node("product", "Gemm", inputs, attributes);
  } else {
    made.node("product", "MatMul", {"a", "b"});
  }
  return made.ending_in(append_tail(dice, made, "product", {rows, columns}));
}

RandomGraph gemm(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, dice.one_in(2) ? 9 : 13);
  const int64_t rows = size(dice);
  const int64_t depth = size(dice);
  const int64_t columns = size(dice);
  const bool is_left_turned = dice.one_in(3);
  const bool is_right_turned = dice.one_in(2);
  Attributes attributes = attributes_of({{"transA", is_left_turned}, {"transB", is_right_turned}});
  if (dice.one_in(3)) attributes.set("alpha", dice.number(0.25F, 2));
  if (dice.one_in(3)) attributes.set("beta", dice.one_in(4) ? 0.0F : dice.number(0.25F, 2));
  made.input("a", dice.tensor(is_left_turned ? Sizes{depth, rows} : Sizes{rows, depth}));
  made.operand(dice, "b",
               dice.tensor(is_right_turned ? Sizes{columns, depth} : Sizes{depth, columns}));
  const std::vector<Sizes> shapes = {{columns}, {1, columns}, {rows, columns}, {rows, 1}, {1}, {}};
  made.operand(dice, "c", dice.tensor(dice.pick(shapes)));
  made.node("gemm", "Gemm", {"a", "b", "c"}, attributes);
  return made.ending_in(append_tail(dice, made, "gemm", {rows, columns}));
}

// One value as both operands.
RandomGraph squares(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  const int64_t rows = size(dice);
  made.input("a", dice.tensor({rows, rows}));
  made.node("y", "Gemm", {"a", "a", "a"},
            attributes_of({{"transA", dice.whole(0, 1)}, {"transB", dice.whole(0, 1)}}));
  return made.ending_in("y");
}

// Small enough for a plain loop.
RandomGraph matmul_of_other_types(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  const Sizes sizes = {1, 2, 3, 5, 8, 16, 17, 31, 33};
  const int64_t rows = dice.pick(sizes);
  const int64_t depth = dice.pick(sizes);
  const int64_t columns = dice.pick(sizes);
  const int64_t kind = dice.whole(0, 2);
  const auto matrix = [&](const Sizes& dims) {
    const DataType types[] = {DataType::Int32, DataType::Int64, DataType::Float64};
    return whole_numbers(dice, types[kind], dims, 1000000);
  };
  if (dice.one_in(2)) {
    made.input("a", matrix({2, rows, depth})).input("b", matrix({2, depth, columns}));
    made.node("y", "MatMul", {"a", "b"});
  } else {
    const Attributes attributes = attributes_of({{"transB", 1}});
    made.input("a", matrix({rows, depth})).input("b", matrix({columns, depth}));
    made.input("c", matrix({columns}));
    made.node("y", "Gemm", {"a", "b", "c"}, attributes);
  }
  return made.ending_in("y");
}

TEST(NativeMatMul, MatMul) {
  const Totals totals = check_each_target(141, 1500, mat_mul);
  EXPECT_GE(totals.answered, 1500);
  EXPECT_EQ(totals.largest, 10U) << "with a sum and Gelu by Tanh";
}
TEST(NativeMatMul, Gemm) { EXPECT_GE(check_each_target(142, 1500, gemm).answered, 1500); }
// With a lower precision, Strassen's algorithm too, which adds elements before it multiplies.
TEST(NativeMatMul, Large) {
  const Totals totals = check_each_target(
      145, 60, large_matmul,
      {.relative = 1e-4, .of_largest = 2e-5, .precision = TESSERA_PRECISION_BFLOAT16});
  EXPECT_GE(totals.answered, 60);
}
TEST(NativeMatMul, LargeInFloat32) {
  EXPECT_GE(check_each_target(146, 30, large_matmul).answered, 30);
}
TEST(NativeMatMul, OneValueTwice) { EXPECT_GE(check_each_target(143, 200, squares).answered, 200); }
TEST(NativeMatMul, OtherTypes) {
  EXPECT_GE(check_each_target(144, 200, matmul_of_other_types).answered, 200);
  const auto large = [](Dice& dice, const ops::Registry& registry) {
    RandomGraph made(registry, 13);
    made.input("a", whole_numbers(dice, DataType::Float64, {64, 64}, 9));
    made.node("y", "MatMul", {"a", "a"});
    return made.ending_in("y");
  };
  expect_refusal(check_each_target(147, 1, large), "few elements");
}

}  // namespace
}  // namespace tessera
