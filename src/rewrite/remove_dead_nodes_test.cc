#include "rewrite/passes.h"

#include "rewrite/rewrite_test.h"

namespace tessera {
namespace {

class RemoveDeadNodes : public PassTest {};

TEST_F(RemoveDeadNodes, FollowsWhatIsNeededFromTheEnd) {
  GraphBuilder graph = builder();
  graph.input("x", float_type(Shape{2}))
      .node("needed", "Relu", {"x"}, {"a"})
      .node("dead", "Relu", {"a"}, {"b"})
      .node("dead too", "Relu", {"b"}, {"c"})
      .node("dead coin", "Coin", {}, {"d"})
      .node("end", "Relu", {"a"}, {"y"})
      .node("kept", "Relu", {"x"}, {"k"})
      .output("y")
      .keep("k");
  const Graph result = run(remove_dead_nodes, graph);
  EXPECT_THAT(node_names(result), ElementsAre("needed", "end", "kept"));
  EXPECT_THAT(changes_, ElementsAre("node 'dead' (Relu) removed: nothing needs it",
                                    "node 'dead too' (Relu) removed: nothing needs it",
                                    "node 'dead coin' (Coin) removed: nothing needs it"));
  EXPECT_TRUE(find_value(result, "c").is_none());
}

TEST_F(RemoveDeadNodes, OmitsOptionalOutputsAtTheEnd) {
  const auto pooled = [&](const std::string& kept) {
    GraphBuilder graph = builder();
    graph.input("x", float_type(Shape{1, 1, 4, 4}))
        .node("pool", "MaxPool", {"x"}, {"y", "indices"}, attributes_of({{"kernel_shape", {2, 2}}}))
        .output(kept);
    return run(remove_dead_nodes, graph);
  };
  EXPECT_EQ(pooled("y").nodes[0].outputs.size(), 1);
  EXPECT_THAT(changes_,
              ElementsAre("node 'pool' (MaxPool): output 'indices' omitted: nothing needs it"));
  EXPECT_EQ(pooled("indices").nodes[0].outputs.size(), 2);
  EXPECT_THAT(changes_, IsEmpty());
}

TEST_F(RemoveDeadNodes, RequiredOutputsStay) {
  GraphBuilder graph = builder();
  graph.input("x", float_type(Shape{4}))
      .constant("k", ints({1}, {2}))
      .node("top", "TopK", {"x", "k"}, {"values", "indices"})
      .output("values");
  EXPECT_EQ(run(remove_dead_nodes, graph).nodes[0].outputs.size(), 2);
}

TEST_F(RemoveDeadNodes, WhatWritesStateLives) {
  GraphBuilder graph = builder();
  graph.input("x", float_type(Shape{2})).node("memory", "Relu", {"x"}, {"state"}).output("x");
  Graph with_state = graph.graph();
  with_state[with_state.nodes[0].outputs[0]].is_state = true;
  EXPECT_THAT(node_names(run(remove_dead_nodes, with_state)), ElementsAre("memory"));
}

TEST_F(RemoveDeadNodes, WhatANestedGraphCapturesLives) {
  GraphBuilder graph = builder();
  graph.input("x", float_type(Shape{2}))
      .node("captured", "Relu", {"x"}, {"a"})
      .node("holder", "Relu", {"x"}, {"y"})
      .output("y");
  Graph nested = graph.graph();
  Body body;
  Value inside;
  inside.name = "inside";
  body.graph.captures = {{nested.nodes[0].outputs[0], add_value(body.graph, inside)}};
  nested.nodes[1].bodies.push_back(std::move(body));
  EXPECT_THAT(node_names(run(remove_dead_nodes, nested)), ElementsAre("captured", "holder"));
  EXPECT_THAT(changes_, IsEmpty());
}

}  // namespace
}  // namespace tessera
