// Matrix products of odd sizes, alone and with following nodes.
#include "base/tensor/tensors_test.h"
#include "candidate_check.h"
#include "random_nodes.h"

namespace tessera {
namespace {

const std::vector<int64_t> kMatmulSizes = {1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 33, 48, 64, 65};

int64_t size(Dice& dice) { return dice.pick(kMatmulSizes); }

// Appends up to four nodes that process `last`, of shape `dims`; returns the name of the last
// value.
std::string append_matmul_tail(Dice& dice, RandomGraph& made, std::string last,
                               const std::vector<int64_t>& dims) {
  const int64_t count = dice.whole(0, 4);
  for (int64_t index = 0; index < count; ++index) {
    const std::string next = "t" + std::to_string(index);
    const std::string other = "o" + std::to_string(index);
    const int64_t kind = dice.whole(0, 7);
    std::vector<int64_t> operand = dims;
    if (kind == 0 && !dims.empty()) operand = {dims.back()};
    if (kind == 1) operand = {};
    if (kind == 2) {
      for (int64_t& dim : operand) dim = dice.one_in(2) ? 1 : dim;
    }
    if (kind <= 3) {
      made.operand(dice, other, dice.tensor(operand, 0.5F, 2));
      const std::vector<std::string> ops = {"Add", "Add", "Mul", "Sub", "Div", "Max", "Min"};
      const std::string op = dice.pick(ops);
      const bool is_swapped = dice.one_in(3) && op != "Div";
      made.node(next, op, is_swapped ? std::vector{other, last} : std::vector{last, other}, {next});
    } else {
      const std::vector<std::string> ops = {"Relu", "Gelu", "Tanh", "Sigmoid", "Elu", "HardSwish"};
      made.node(next, dice.pick(ops), {last});
    }
    last = next;
  }
  return last;
}

RandomGraph mat_mul(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 20);
  const int64_t rows = size(dice);
  const int64_t depth = size(dice);
  const int64_t columns = size(dice);
  const int64_t batch_axes = dice.whole(0, 3);
  const auto [left, right, result] =
      random_mat_mul_shapes(dice, rows, depth, columns, batch_axes, 4);
  made.input("a", dice.tensor(left));
  made.operand(dice, "b", dice.tensor(right));
  made.node("product", "MatMul", {"a", "b"});
  return made.ending_in(append_matmul_tail(dice, made, "product", result));
}

RandomGraph gemm(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  const int64_t rows = size(dice);
  const int64_t depth = size(dice);
  const int64_t columns = size(dice);
  const bool is_left_transposed = dice.one_in(3);
  const bool is_right_transposed = dice.one_in(2);
  Attributes attributes =
      attributes_of({{"transA", is_left_transposed}, {"transB", is_right_transposed}});
  if (dice.one_in(3)) attributes.set("alpha", dice.number(0.25F, 2));
  if (dice.one_in(3)) attributes.set("beta", dice.one_in(4) ? 0.0F : dice.number(0.25F, 2));
  made.input("a",
             dice.tensor(is_left_transposed ? std::vector{depth, rows} : std::vector{rows, depth}));
  made.operand(
      dice, "b",
      dice.tensor(is_right_transposed ? std::vector{columns, depth} : std::vector{depth, columns}));
  std::vector<std::string> inputs = {"a", "b"};
  if (!dice.one_in(4)) {
    const std::vector<std::vector<int64_t>> shapes = {{columns}, {1, columns}, {rows, columns},
                                                      {rows, 1}, {1},          {}};
    made.operand(dice, "c", dice.tensor(dice.pick(shapes)));
    inputs.emplace_back("c");
  }
  made.node("gemm", "Gemm", inputs, attributes);
  // Gelu needs operator set 20; this graph has 13.
  const int64_t kind = dice.whole(0, 3);
  std::string last = "gemm";
  if (kind == 1) made.node("relu", "Relu", {"gemm"}, {last = "relu"});
  if (kind == 2) {
    made.input("residual", dice.tensor({rows, columns}));
    made.node("sum", "Add", {"residual", "gemm"}, {last = "sum"});
  }
  return made.ending_in(last);
}

// The two products of attention, with the Transposes and sums around them.
RandomGraph attention(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 20);
  const std::vector<int64_t> sizes = {1, 2, 3, 8, 16, 17};
  const int64_t batch = dice.whole(1, 2);
  const int64_t heads = dice.whole(1, 4);
  const int64_t rows = dice.pick(sizes);
  const int64_t columns = dice.pick(sizes);
  const int64_t depth = dice.pick(sizes);
  const auto turn = [&](const std::string& from, const std::string& to,
                        const std::vector<int64_t>& order) {
    made.node(to, "Transpose", {from}, attributes_of({{"perm", order}}));
  };
  made.input("q", dice.tensor({batch, rows, heads, depth}));
  made.input("k", dice.tensor({batch, columns, heads, depth}));
  turn("q", "qt", {0, 2, 1, 3});
  turn("k", "kt", {0, 2, 3, 1});
  made.constant("factor", floats({}, {0.125F}));
  made.input("mask", dice.tensor({batch, 1, dice.one_in(2) ? rows : 1, columns}));
  made.node("a", "MatMul", {"qt", "kt"});
  made.node("b", "Mul", {"a", "factor"}).node("c", "Add", {"b", "mask"});
  made.node("s", "Softmax", {"c"});
  made.input("v", dice.tensor({batch, columns, heads, depth}));
  turn("v", "vt", {0, 2, 1, 3});
  made.node("o", "MatMul", {"s", "vt"});
  turn("o", "y", {0, 2, 1, 3});
  return made.ending_in("y");
}

// Matrices that are transposed first, in every possible way for two axes.
RandomGraph turned(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 13);
  const std::vector<int64_t> sizes = {1, 2, 3, 16, 33};
  const int64_t rows = dice.pick(sizes);
  const int64_t columns = dice.pick(sizes);
  const int64_t depth = dice.pick(sizes);
  made.input("a", dice.tensor({depth, rows}));
  made.input("b", dice.tensor({columns, depth}));
  made.node("at", "Transpose", {"a"}).node("bt", "Transpose", {"b"});
  made.node("p", dice.one_in(2) ? "MatMul" : "Gemm", {"at", "bt"});
  made.node("y", "Transpose", {"p"});
  return made.ending_in(dice.one_in(2) ? "y" : "p");
}

TEST(OnednnProducts, MatMul) {
  const Totals totals = check_cases("onednn", 1, 300, mat_mul);
  EXPECT_EQ(totals.answered, 300);
  EXPECT_GE(totals.largest, 5U);
}

TEST(OnednnProducts, Attention) { expect_answers(check_cases("onednn", 3, 60, attention), 60, 5); }

TEST(OnednnProducts, Turned) { expect_answers(check_cases("onednn", 4, 60, turned), 60, 4); }

TEST(OnednnProducts, Gemm) { EXPECT_EQ(check_cases("onednn", 2, 200, gemm).answered, 200); }

}  // namespace
}  // namespace tessera
