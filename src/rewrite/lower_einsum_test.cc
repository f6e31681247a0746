#include "rewrite/passes.h"

#include "rewrite/rewrite_test.h"

namespace tessera {
namespace {

using testing::Each;
using testing::SizeIs;

class LowerEinsum : public PassTest {
 protected:
  GraphBuilder einsum(const std::string& equation, const Shape& left, const Shape& right) {
    GraphBuilder graph = builder();
    graph.input("a", float_type(left))
        .input("b", float_type(right))
        .node("sum", "Einsum", {"a", "b"}, {"y"}, attributes_of({{"equation", equation}}))
        .output("y");
    return graph;
  }

  static std::vector<std::string> ops_of(const Graph& graph) {
    std::vector<std::string> ops;
    for (const Node& node : graph.nodes) ops.push_back(node.op);
    return ops;
  }

  void expect_same(const Graph& graph, const Graph& lowered, std::vector<int64_t> left,
                   std::vector<int64_t> right) {
    const std::map<std::string, Tensor> inputs = {{"a", noise(std::move(left), 1)},
                                                  {"b", noise(std::move(right), 2)}};
    const Tensor expected = outputs_of(graph, inputs)[0];
    const Tensor found = outputs_of(lowered, inputs)[0];
    EXPECT_EQ(found.dims(), expected.dims());
    EXPECT_THAT(found.as<float>(), Pointwise(FloatNear(1e-5F), expected.as<float>()));
  }
};

TEST_F(LowerEinsum, GivesTheSameNumbers) {
  const struct {
    std::string equation;
    std::vector<int64_t> left;
    std::vector<int64_t> right;
    std::vector<std::string> ops;
  } cases[] = {
      {"ij,jk->ik", {2, 3}, {3, 4}, {"MatMul"}},
      {"bij,bjk->bik", {5, 2, 3}, {5, 3, 4}, {"MatMul"}},
      {"b g i d, b g j d -> b g i j", {2, 3, 4, 5}, {2, 3, 6, 5}, {"Transpose", "MatMul"}},
      {"bij,jk->bik", {5, 2, 3}, {3, 4}, {"MatMul"}},
      {"...j,jk->...k", {5, 2, 3}, {3, 4}, {"MatMul"}},
      {"ij,jk->ki", {2, 3}, {3, 4}, {"Transpose", "Transpose", "MatMul"}},
      {"ij,ij->i", {4, 3}, {4, 3}, {"Reshape", "Reshape", "MatMul", "Reshape"}},
      {"i,j->ij", {4}, {3}, {"Reshape", "Reshape", "MatMul"}},
      {"ij,ij->", {4, 3}, {4, 3}, {"Reshape", "Reshape", "MatMul", "Reshape"}},
      {"bqd,dhe->bqhe", {2, 5, 3}, {3, 4, 6}, {"Reshape", "Reshape", "MatMul", "Reshape"}},
      {"bhwkc,hkc->bhwk", {2, 3, 4, 5, 6}, {3, 5, 6}, {}},
      {"abcd,dbea->ace", {2, 3, 4, 5}, {5, 3, 6, 2}, {}},
      {"ab,cd->acbd", {2, 3}, {4, 5}, {}},
      {"ij,jk->k", {2, 3}, {3, 4}, {"ReduceSum", "Reshape", "MatMul", "Reshape"}},
      {"ij,kl->k",
       {2, 3},
       {4, 5},
       {"ReduceSum", "ReduceSum", "Reshape", "Reshape", "MatMul", "Reshape"}},
  };
  for (const auto& [equation, left, right, ops] : cases) {
    SCOPED_TRACE(equation);
    GraphBuilder graph = einsum(equation, shape_from(left), shape_from(right));
    const Graph lowered = run(lower_functions, graph);
    EXPECT_THAT(changes_, ElementsAre("node 'sum' (Einsum) computed by simpler ops"));
    EXPECT_THAT(ops_of(lowered), Each(Not("Einsum")));
    if (!ops.empty()) {
      EXPECT_EQ(ops_of(lowered), ops);
    }
    EXPECT_EQ(lowered[lowered.outputs[0]].name, "y");
    expect_same(graph.graph(), lowered, left, right);
  }
}

TEST_F(LowerEinsum, TakesAnyNumberOfOperands) {
  const struct {
    std::string equation;
    std::vector<std::vector<int64_t>> operands;
    std::vector<std::string> ops;
  } cases[] = {
      {"ij->ji", {{2, 3}}, {"Transpose"}},
      {"ij->ij", {{2, 3}}, {"Identity"}},
      {"ijk->kj", {{2, 3, 4}}, {"ReduceSum", "Transpose"}},
      {"ij->", {{2, 3}}, {"ReduceSum"}},
      {"ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 5}}, {"MatMul", "MatMul"}},
      {"ij,kl,jk->li", {{2, 3}, {4, 5}, {3, 4}}, {}},
      {"bi,bj,b->ij", {{6, 2}, {6, 3}, {6}}, {}},
      {"i,j,k->kji", {{2}, {3}, {4}}, {"Einsum"}},
      {"ab,bc,cd,da->", {{2, 3}, {3, 4}, {4, 5}, {5, 2}}, {}},
      {"...ij,...jk,k->...i", {{5, 2, 3}, {5, 3, 4}, {4}}, {}},
  };
  for (const auto& [equation, operands, ops] : cases) {
    SCOPED_TRACE(equation);
    GraphBuilder graph = builder();
    std::map<std::string, Tensor> inputs;
    std::vector<std::string> names;
    for (const std::vector<int64_t>& dims : operands) {
      names.push_back("x" + std::to_string(names.size()));
      graph.input(names.back(), float_type(shape_from(dims)));
      inputs[names.back()] = noise(dims, static_cast<uint32_t>(names.size()));
    }
    graph.node("sum", "Einsum", names, {"y"}, attributes_of({{"equation", equation}})).output("y");
    const Graph lowered = run(lower_functions, graph);
    if (ops.empty()) {
      EXPECT_THAT(ops_of(lowered), Each(Not("Einsum")));
    } else {
      EXPECT_EQ(ops_of(lowered), ops);
    }
    const Tensor expected = outputs_of(graph.graph(), inputs)[0];
    const Tensor found = outputs_of(lowered, inputs)[0];
    EXPECT_EQ(found.dims(), expected.dims());
    EXPECT_THAT(found.as<float>(), Pointwise(FloatNear(1e-5F), expected.as<float>()));
  }
}

TEST_F(LowerEinsum, UnknownLengthsPass) {
  const Dim batch = Dim::symbol("batch");
  const Dim length = Dim::symbol("length");
  const struct {
    std::string equation;
    Shape left;
    Shape right;
  } cases[] = {
      {"bij,bjk->bik", {batch, length, 3}, {batch, 3, 4}},
      {"bij,jk->bik", {batch, length, 3}, {3, 4}},
      {"bqd,bdhe->bqhe", {batch, length, 3}, {batch, 3, 4, 6}},
  };
  for (const auto& [equation, left, right] : cases) {
    SCOPED_TRACE(equation);
    GraphBuilder graph = einsum(equation, left, right);
    const Graph lowered = run(lower_functions, graph);
    EXPECT_THAT(ops_of(lowered), Each(Not("Einsum")));
    const auto actual = [&](const Shape& shape) {
      std::vector<int64_t> dims;
      for (const Dim& dim : shape)
        dims.push_back(dim.is_known() ? dim.value() : dim == batch ? 2 : 5);
      return dims;
    };
    expect_same(graph.graph(), lowered, actual(left), actual(right));
  }
}

TEST_F(LowerEinsum, LeavesTheRest) {
  const struct {
    std::string equation;
    Shape left;
    Shape right;
  } cases[] = {
      {"ii,ij->j", {3, 3}, {3, 2}},            // twice in one input
      {"bij,bjk->bik", {5, 2, 3}, {1, 3, 4}},  // broadcast
      {"ij,jk->ik", {0, 3}, {3, 4}},           // empty
      {"abi,bai->ab",
       {Dim::symbol("a"), Dim::symbol("b"), 4},  // one index, two symbols
       {Dim::symbol("c"), Dim::symbol("a"), 4}},
  };
  for (const auto& [equation, left, right] : cases) {
    SCOPED_TRACE(equation);
    EXPECT_THAT(ops_of(run(lower_functions, einsum(equation, left, right))), ElementsAre("Einsum"));
    EXPECT_THAT(changes_, IsEmpty());
  }
}

TEST_F(LowerEinsum, LeavesTypesThatMatMulDoesNotHave) {
  const Type bytes = Type::tensor(DataType::Int8, Shape{3, 3});
  GraphBuilder graph = builder();
  graph.input("a", bytes)
      .input("b", bytes)
      .node("sum", "Einsum", {"a", "b"}, {"y"}, attributes_of({{"equation", "ij,jk->ik"}}))
      .output("y");
  EXPECT_THAT(ops_of(run(lower_functions, graph)), ElementsAre("Einsum"));
}

TEST_F(LowerEinsum, NewNamesAreNotTaken) {
  GraphBuilder graph = builder();
  graph.input("a", float_type(Shape{2, 3}))
      .input("b", float_type(Shape{4, 3}))
      .node("sum_Transpose", "Relu", {"a"}, {"sum_value"})
      .node("sum", "Einsum", {"sum_value", "b"}, {"y"}, attributes_of({{"equation", "ij,kj->ik"}}))
      .output("y");
  const Graph lowered = run(lower_functions, graph);
  EXPECT_THAT(node_names(lowered), ElementsAre("sum_Transpose", "sum_Transpose_2", "sum"));
  EXPECT_THAT(lowered.nodes, SizeIs(3));
}

}  // namespace
}  // namespace tessera
