// Kernels on sparse values, compared with the reference on the dense tensors.

#include <algorithm>
#include <string>
#include <vector>

#include "any_tensor.h"
#include "base/tensor/tensors_test.h"
#include "each_target.h"

namespace tessera {
namespace {

const std::vector<SparseFormat> kFormats = {SparseFormat::Csr, SparseFormat::RowSparse};

// Mostly a few elements, sometimes none, sometimes all.
int64_t rarity(Dice& dice) { return dice.one_in(8) ? 1 : dice.whole(2, 40); }

RandomGraph product(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 19);
  const int64_t rows = dice.whole(1, 70);
  const int64_t depth = dice.whole(1, 60);
  const int64_t columns = dice.whole(1, 90);
  const bool is_gemm = dice.one_in(2);
  const bool is_left_sparse = dice.one_in(2);
  const bool is_turned = is_gemm && !is_left_sparse && dice.one_in(2);
  const std::vector<int64_t> right =
      is_turned ? std::vector<int64_t>{columns, depth} : std::vector<int64_t>{depth, columns};
  if (is_left_sparse) {
    made.sparse_input("a", SparseFormat::Csr,
                      dice.sparse_tensor(SparseFormat::Csr, {rows, depth}, rarity(dice)));
    made.operand(dice, "b", dice.tensor(right));
  } else {
    std::vector<int64_t> left = {rows, depth};
    if (!is_gemm && dice.one_in(3)) left.insert(left.begin(), dice.whole(1, 3));
    made.operand(dice, "a", dice.tensor(left));
    made.sparse_input("b", SparseFormat::Csr,
                      dice.sparse_tensor(SparseFormat::Csr, right, rarity(dice)));
  }
  Attributes attributes;
  std::vector<std::string> inputs = {"a", "b"};
  if (is_gemm) {
    attributes.set("transB", int64_t{is_turned ? 1 : 0});
    if (dice.one_in(2)) attributes.set("alpha", dice.number(-2, 2));
    if (dice.one_in(2)) attributes.set("beta", dice.number(-2, 2));
    if (!dice.one_in(3)) {
      const std::vector<std::vector<int64_t>> shapes = {{columns}, {1, columns}, {1}, {}};
      made.operand(dice, "c", dice.tensor(dice.pick(shapes)));
      inputs.push_back("c");
    }
  }
  made.node("y", is_gemm ? "Gemm" : "MatMul", inputs, attributes);
  return made.ending_in("y");
}

std::vector<int64_t> sparse_dims(Dice& dice, SparseFormat format) {
  std::vector<int64_t> dims = {dice.whole(1, 40), dice.whole(1, 50)};
  if (format == SparseFormat::RowSparse && dice.one_in(3)) dims.pop_back();
  if (format == SparseFormat::RowSparse && dice.one_in(3)) dims.push_back(dice.whole(1, 5));
  return dims;
}

RandomGraph function(Dice& dice, const ops::Registry& registry) {
  static const std::vector<std::string> kOps = {
      "Abs", "Asinh", "Atan", "Ceil",     "Erf",  "Floor", "LeakyRelu", "Neg", "Relu", "Sign",
      "Sin", "Sinh",  "Tan",  "Softsign", "Sqrt", "Tanh",  "Round",     "Mul", "Div"};
  RandomGraph made(registry, 22);
  const SparseFormat format = dice.pick(kFormats);
  made.sparse_input("x", format,
                    dice.sparse_tensor(format, sparse_dims(dice, format), rarity(dice)));
  const std::string op = dice.pick(kOps);
  std::vector<std::string> inputs = {"x"};
  if (op == "Mul" || op == "Div") {
    made.constant("n", dice.tensor({}, 0.5F, 3));
    inputs.push_back("n");
    if (op == "Mul" && dice.one_in(2)) std::swap(inputs[0], inputs[1]);
  }
  made.node("y", op, inputs);
  return made.ending_in("y");
}

RandomGraph sum(Dice& dice, const ops::Registry& registry) {
  static const std::vector<std::string> kOps = {"ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2",
                                                "ReduceSumSquare"};
  RandomGraph made(registry, 18);
  const SparseFormat format = dice.pick(kFormats);
  const std::vector<int64_t> dims = {dice.whole(1, 40), dice.whole(1, 50)};
  made.sparse_input("x", format, dice.sparse_tensor(format, dims, rarity(dice)));
  const std::vector<std::vector<int64_t>> choices = {{0}, {1}, {0, 1}, {-1}, {-2}};
  std::vector<std::string> inputs = {"x"};
  if (!dice.one_in(4)) {
    const std::vector<int64_t> axes = dice.pick(choices);
    made.constant("axes", ints(axes));
    inputs.push_back("axes");
  }
  const Attributes attributes = attributes_of({{"keepdims", dice.whole(0, 1)}});
  made.node("y", dice.pick(kOps), inputs, attributes);
  return made.ending_in("y");
}

RandomGraph sparse_gather(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 19);
  const std::vector<int64_t> dims = sparse_dims(dice, SparseFormat::RowSparse);
  made.sparse_input("x", SparseFormat::RowSparse,
                    dice.sparse_tensor(SparseFormat::RowSparse, dims, rarity(dice)));
  std::vector<int64_t> numbers;
  for (int64_t count = dice.whole(1, 30); count > 0; --count) {
    numbers.push_back(dice.whole(-dims[0], dims[0] - 1));
  }
  const DataType type = dice.one_in(2) ? DataType::Int64 : DataType::Int32;
  made.constant("i", integer_list(numbers, type));
  made.node("y", "Gather", {"x", "i"});
  return made.ending_in("y");
}

RandomGraph scatter(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 18);
  const std::vector<int64_t> dims = sparse_dims(dice, SparseFormat::RowSparse);
  made.sparse_input("x", SparseFormat::RowSparse,
                    dice.sparse_tensor(SparseFormat::RowSparse, dims, rarity(dice)));
  std::vector<int64_t> numbers;
  for (int64_t count = dice.whole(1, 30); count > 0; --count) {
    numbers.push_back(dice.whole(-dims[0], dims[0] - 1));
  }
  const auto count = static_cast<int64_t>(numbers.size());
  made.constant("i", ints({count, 1}, numbers));
  std::vector<int64_t> updates = dims;
  updates[0] = count;
  made.operand(dice, "u", dice.tensor(updates));
  made.node("y", "ScatterND", {"x", "i", "u"}, attributes_of({{"reduction", "add"}}));
  return made.ending_in("y");
}

RandomGraph addition(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 19);
  const SparseFormat format = dice.pick(kFormats);
  const std::vector<int64_t> dims = sparse_dims(dice, format);
  made.sparse_input("x", format, dice.sparse_tensor(format, dims, rarity(dice)));
  made.input("d", dice.tensor(dims));
  const bool is_first = dice.one_in(2);
  made.node("y", "Add", {is_first ? "x" : "d", is_first ? "d" : "x"});
  return made.ending_in("y");
}

// Values without a sparse form get no sparse candidates, and no illegal ones.
TEST(NativeSparse, DenseGraphsGetNoOffers) {
  const auto dense_product = [](Dice& dice, const ops::Registry& registry) {
    RandomGraph made = product(dice, registry);
    made.sparse.clear();
    return made;
  };
  const Totals totals = check_each_target(1, 50, dense_product);
  EXPECT_EQ(totals.sparse, 0);
  for (const auto& [refusal, count] : totals.refusals) {
    EXPECT_EQ(refusal.find("not legal"), std::string::npos) << refusal;
  }
}

TEST(NativeSparse, MatMulsAsTheReference) {
  EXPECT_GE(check_each_target(1, 1000, product).sparse, 1000);
}

TEST(NativeSparse, FunctionsAsTheReference) {
  EXPECT_GE(check_each_target(2, 700, function).sparse, 700);
}

TEST(NativeSparse, SumsAsTheReference) {
  const Tolerance tolerance{.of_inputs = 1e-7};
  EXPECT_GE(check_each_target(3, 500, sum, tolerance).sparse, 500);
}

TEST(NativeSparse, GatheredRowsAsTheReference) {
  EXPECT_GE(check_each_target(4, 300, sparse_gather).sparse, 300);
}

TEST(NativeSparse, ScatteredRowsAsTheReference) {
  EXPECT_GE(check_each_target(5, 300, scatter).sparse, 300);
}

TEST(NativeSparse, AdditionsAsTheReference) {
  EXPECT_GE(check_each_target(6, 300, addition).sparse, 300);
}

}  // namespace
}  // namespace tessera
