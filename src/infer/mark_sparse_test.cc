#include "infer/mark_sparse.h"

#include <limits>

#include "base/tensor/tensors_test.h"
#include "infer/infer.h"
#include "ops/graph_test.h"

namespace tessera {
namespace {

Tensor number(float value) { return floats({}, {value}); }

// x, a 10x6 matrix, passes through nodes with one input each and is added to a constant.
Graph chain(const std::vector<std::string>& ops) {
  GraphBuilder builder(all_ops(), 18);
  builder.input("x", float_type(Shape{10, 6}));
  std::string last = "x";
  for (const std::string& op : ops) {
    const std::string next = op + "_out";
    builder.node(op, op, {last}, {next});
    last = next;
  }
  builder.constant("one", number(1)).node("add", "Add", {last, "one"}, {"y"}).output("y");
  return infer_types(builder.graph(), all_ops(), Log());
}

constexpr SparseForm kCsr = {SparseFormat::Csr, 7};

TEST(MarkSparse, FollowsOpsThatKeepZeros) {
  Graph graph = chain({"Relu", "Sqrt", "Tanh", "Exp", "Abs"});
  mark_sparse(graph, {{"x", kCsr}}, all_ops());
  for (const char* name : {"x", "Relu_out", "Sqrt_out", "Tanh_out"}) {
    EXPECT_EQ(value_of(graph, name).sparse, kCsr) << name;
  }
  for (const char* name : {"Exp_out", "Abs_out", "y"}) {
    EXPECT_EQ(value_of(graph, name).sparse, std::nullopt) << name;
  }
  EXPECT_TRUE(value_of(graph, "x").is_io_sparse);
  EXPECT_FALSE(value_of(graph, "Relu_out").is_io_sparse);
}

TEST(MarkSparse, LeavesDenseGraphsAlone) {
  Graph graph = chain({"Relu"});
  mark_sparse(graph, {}, all_ops());
  for (const Value& value : graph.values) EXPECT_EQ(value.sparse, std::nullopt) << value.name;
}

TEST(MarkSparse, GivesConstantsTheirOwnForm) {
  GraphBuilder builder(all_ops(), 18);
  Tensor weight(DataType::Float32, {4, 3});
  std::fill_n(weight.mutable_as<float>().data(), 12, 0.0F);
  weight.mutable_as<float>()[5] = 2;
  builder.input("x", float_type(Shape{2, 4})).constant("w", weight);
  builder.node("product", "MatMul", {"x", "w"}, {"y"}).output("y");
  Graph graph = infer_types(builder.graph(), all_ops(), Log());
  graph[find_value(graph, "w")].sparse_constant =
      std::make_shared<const SparseTensor>(SparseTensor::from_dense(SparseFormat::Csr, weight));
  mark_sparse(graph, {}, all_ops());
  EXPECT_EQ(value_of(graph, "w").sparse, (SparseForm{SparseFormat::Csr, 1}));
  EXPECT_EQ(value_of(graph, "y").sparse, std::nullopt);
}

TEST(MarkSparse, ScalesByFiniteNumbersOnly) {
  const struct {
    const char* op;
    bool is_sparse_first;
    float by;
    bool stays_sparse;
  } cases[] = {
      {"Mul", true, 3, true},
      {"Mul", false, 3, true},
      {"Mul", true, std::numeric_limits<float>::infinity(), false},
      {"Mul", true, std::numeric_limits<float>::quiet_NaN(), false},
      {"Div", true, 2, true},
      {"Div", true, 0, false},
      {"Div", false, 2, false},
      {"Add", true, 0, false},
  };
  for (const auto& [op, is_sparse_first, by, stays_sparse] : cases) {
    GraphBuilder builder(all_ops(), 18);
    builder.input("x", float_type(Shape{10, 6})).constant("n", number(by));
    builder.node(
        "scale", op,
        is_sparse_first ? std::vector<std::string>{"x", "n"} : std::vector<std::string>{"n", "x"},
        {"y"});
    builder.output("y");
    Graph graph = infer_types(builder.graph(), all_ops(), Log());
    mark_sparse(graph, {{"x", kCsr}}, all_ops());
    EXPECT_EQ(value_of(graph, "y").sparse.has_value(), stays_sparse) << op << " by " << by;
  }
}

TEST(MarkSparse, ScatteredRowsAreAdded) {
  for (const auto& [capacity, expected] : {std::pair<int64_t, int64_t>{2, 5}, {9, 10}}) {
    GraphBuilder builder(all_ops(), 18);
    builder.input("x", float_type(Shape{10, 6}))
        .input("rows", Type::tensor(DataType::Int64, Shape{3, 1}))
        .input("updates", float_type(Shape{3, 6}))
        .node("scatter", "ScatterND", {"x", "rows", "updates"}, {"y"},
              attributes_of({{"reduction", "add"}}))
        .output("y");
    Graph graph = infer_types(builder.graph(), all_ops(), Log());
    mark_sparse(graph, {{"x", {SparseFormat::RowSparse, capacity}}}, all_ops());
    EXPECT_EQ(value_of(graph, "y").sparse, (SparseForm{SparseFormat::RowSparse, expected}));
  }
}

TEST(MarkSparse, WhatTheCallerAskedOfAnOutputStands) {
  GraphBuilder builder(all_ops(), 18);
  builder.input("x", float_type(Shape{10, 6})).node("relu", "Relu", {"x"}, {"y"}).output("y");
  Graph graph = infer_types(builder.graph(), all_ops(), Log());
  mark_sparse(graph, {{"x", kCsr}, {"y", {SparseFormat::Csr, 5}}}, all_ops());
  EXPECT_EQ(value_of(graph, "y").sparse, (SparseForm{SparseFormat::Csr, 5}));
}

TEST(MarkSparse, SaysWhatCannotBe) {
  const struct {
    std::map<std::string, SparseForm> exchanged;
    const char* says;
  } cases[] = {
      {{{"z", kCsr}}, "layout of 'z': expected an input or output of the model ('x', 'y')"},
      {{{"Relu_out", kCsr}}, "expected an input or output"},
      {{{"x", {SparseFormat::Csr, 61}}},
       "expected a capacity of 0 to 60 for float32 10x6, found 61"},
      {{{"x", {SparseFormat::RowSparse, -1}}}, "expected a capacity of 0 to 10"},
  };
  for (const auto& [exchanged, says] : cases) {
    Graph graph = chain({"Relu"});
    EXPECT_THAT(
        error_of(ErrorKind::InvalidArgument, [&] { mark_sparse(graph, exchanged, all_ops()); }),
        HasSubstr(says));
  }
}

}  // namespace
}  // namespace tessera
