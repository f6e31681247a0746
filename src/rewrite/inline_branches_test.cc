#include "rewrite/passes.h"

#include "rewrite/rewrite_test.h"

namespace tessera {
namespace {

class InlineBranches : public PassTest {
 protected:
  // x -> If(condition) -> y; each branch reads x by capture.
  Graph conditional(bool is_known, bool is_true) {
    GraphBuilder outer = builder();
    outer.input("x", float_type(Shape{2}));
    if (is_known) {
      outer.constant("c", Tensor::from<uint8_t>(DataType::Bool, {}, std::vector<uint8_t>{is_true}));
    } else {
      outer.input("c", Type::tensor(DataType::Bool, Shape{}));
    }
    Graph graph = outer.node("first", "Relu", {"x"}, {"inner"}).graph();
    Node node;
    node.name = "choice";
    node.op = "If";
    node.version = 16;
    node.inputs = {find_value(graph, "c")};
    graph.outputs = {add_value(graph, {.name = "y"})};
    node.outputs = graph.outputs;
    node.bodies = {{"then_branch", branch("Neg", graph)}, {"else_branch", branch("Abs", graph)}};
    graph.nodes.push_back(std::move(node));
    return infer_types(graph, registry_, log_);
  }

 private:
  // Its value has the name of one outside.
  Graph branch(const std::string& op, const Graph& outer) {
    GraphBuilder inside = builder();
    inside.input("x", float_type(Shape{2})).node("first", op, {"x"}, {"inner"}).output("inner");
    Graph graph = inside.graph();
    graph.captures = {{find_value(outer, "x"), graph.inputs[0]}};
    graph.inputs.clear();
    return graph;
  }
};

TEST_F(InlineBranches, TakesTheBranchThatAConstantChooses) {
  for (const bool is_true : {true, false}) {
    const Graph result = run(inline_branches, conditional(true, is_true));
    EXPECT_THAT(node_names(result), ElementsAre("first", "choice.first"));
    EXPECT_EQ(result.nodes[1].op, is_true ? "Neg" : "Abs");
    EXPECT_EQ(result[result.nodes[1].outputs[0]].name, "y");
    EXPECT_EQ(result[result.nodes[1].inputs[0]].name, "x");
    EXPECT_THAT(changes_, ElementsAre("node 'choice' (If) replaced by the branch that its constant "
                                      "condition chooses"));
  }
}

TEST_F(InlineBranches, LeavesAConditionThatOnlyTheRunKnows) {
  const Graph result = run(inline_branches, conditional(false, true));
  EXPECT_THAT(node_names(result), ElementsAre("first", "choice"));
  EXPECT_THAT(changes_, IsEmpty());
}

TEST_F(InlineBranches, AnOutputThatTheBranchDoesNotMakeIsCopied) {
  Graph graph = conditional(true, true);
  for (Body& body : graph.nodes[1].bodies) body.graph.outputs = {body.graph.captures[0].inner};
  const Graph result = run(inline_branches, graph);
  ASSERT_EQ(result.nodes.back().op, "Identity");
  EXPECT_EQ(result[result.nodes.back().inputs[0]].name, "x");
  EXPECT_EQ(result[result.nodes.back().outputs[0]].name, "y");
}

}  // namespace
}  // namespace tessera
