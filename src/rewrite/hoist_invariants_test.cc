#include "rewrite/passes.h"
#include "rewrite/rewrite_test.h"

namespace tessera {
namespace {

class HoistInvariants : public PassTest {
 protected:
  // y = x + n * f(w), by a Loop: `inside` makes "step" of the captured w and the constant two, and
  // may read the carried v.
  Graph loop(const GraphBuilder& inside) {
    GraphBuilder outer = builder();
    outer.input("n", Type::tensor(DataType::Int64, Shape{}))
        .input("x", float_type(Shape{2}))
        .input("w", float_type(Shape{2}));
    Graph graph = outer.graph();
    Graph body = inside.graph();
    const ValueId captured = find_value(body, "w");
    std::erase(body.inputs, captured);
    body.captures = {{find_value(graph, "w"), captured}};
    Node node;
    node.name = "repeat";
    node.op = "Loop";
    node.version = 16;
    node.inputs = {find_value(graph, "n"), ValueId{}, find_value(graph, "x")};
    graph.outputs = {add_value(graph, {.name = "y"})};
    node.outputs = graph.outputs;
    node.bodies = {{"body", std::move(body)}};
    graph.nodes.push_back(std::move(node));
    return infer_types(graph, registry_, log_);
  }

  GraphBuilder body() const {
    GraphBuilder inside = builder();
    inside.input("i", Type::tensor(DataType::Int64, Shape{}))
        .input("go", Type::tensor(DataType::Bool, Shape{}))
        .input("v", float_type(Shape{2}))
        .input("w", float_type(Shape{2}))
        .constant("two", floats({2, 2}));
    return inside;
  }

  static GraphBuilder& finish(GraphBuilder& inside) {
    return inside.node("go_on", "Identity", {"go"}, {"goes_on"})
        .node("add", "Add", {"v", "step"}, {"next"})
        .output("goes_on")
        .output("next");
  }
};

TEST_F(HoistInvariants, MovesWhatDependsOnCapturesAndConstants) {
  GraphBuilder inside = body();
  inside.node("double", "Mul", {"w", "two"}, {"doubled"})
      .node("shrink", "Tanh", {"doubled"}, {"step"});
  const Graph result = run(hoist_invariants, loop(finish(inside)));
  EXPECT_THAT(node_names(result), ElementsAre("double", "shrink", "repeat"));
  const Graph& rest = result.nodes[2].bodies[0].graph;
  EXPECT_THAT(node_names(rest), ElementsAre("go_on", "add"));
  // Only what the rest reads is captured.
  ASSERT_EQ(rest.captures.size(), 1U);
  EXPECT_EQ(result[rest.captures[0].outer].name, "step");
  EXPECT_EQ(result[result.nodes[0].inputs[0]].name, "w");
  EXPECT_TRUE(result[result.nodes[0].inputs[1]].is_constant());
  EXPECT_THAT(changes_, ElementsAre("node 'repeat' (Loop) no longer computes 'double', 'shrink' in "
                                    "each iteration"));
}

TEST_F(HoistInvariants, LeavesWhatVariesOrMayFail) {
  GraphBuilder inside = body();
  inside.node("varies", "Mul", {"v", "w"}, {"product"})
      .node("random", "Coin", {"w"}, {"coin"})
      .constant("at", ints({2}, {0, 1}))
      // Its kernel refuses indices that are out of range.
      .node("pick", "Gather", {"w", "at"}, {"picked"})
      .node("sum", "Sum", {"product", "coin", "picked"}, {"step"});
  const Graph result = run(hoist_invariants, loop(finish(inside)));
  EXPECT_THAT(node_names(result), ElementsAre("repeat"));
  EXPECT_THAT(changes_, IsEmpty());
}

TEST_F(HoistInvariants, GivesOtherNamesWhereTheyAreTaken) {
  GraphBuilder inside = body();
  inside.node("repeat", "Neg", {"w"}, {"step"});
  Graph graph = loop(finish(inside));
  graph.values[static_cast<size_t>(find_value(graph, "x").index)].name = "step";
  const Graph result = run(hoist_invariants, graph);
  EXPECT_THAT(node_names(result), ElementsAre("repeat.repeat", "repeat"));
  EXPECT_EQ(result[result.nodes[0].outputs[0]].name, "repeat.step");
}

}  // namespace
}  // namespace tessera
