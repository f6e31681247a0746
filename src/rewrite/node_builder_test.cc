#include "rewrite/node_builder.h"

#include "rewrite/rewrite_test.h"

namespace tessera {
namespace {

using testing::ElementsAre;

class NodeBuilderTest : public PassTest {
 protected:
  // A graph of Identity nodes "first" (x to a) and "second" (a to y).
  Graph two_nodes() {
    GraphBuilder graph = builder();
    graph.input("x", float_type(Shape{2}))
        .node("first", "Identity", {"x"}, {"a"})
        .node("second", "Identity", {"a"}, {"y"})
        .output("y");
    return infer_types(graph.graph(), registry_, log_);
  }

  // Replaces `graph`'s first node by what `write` adds.
  template <class Write>
  Graph replaced(Graph graph, const Write& write) {
    std::vector<Node> nodes = std::exchange(graph.nodes, {});
    NodeBuilder builder(graph, registry_);
    builder.begin(nodes[0]);
    write(builder);
    builder.commit();
    for (size_t index = 1; index < nodes.size(); ++index) graph.nodes.push_back(nodes[index]);
    graph = compact(std::move(graph));
    EXPECT_EQ(explain_illegal(graph), "");
    return graph;
  }

  static std::vector<std::string> names_of(const Graph& graph) {
    std::vector<std::string> names;
    for (const Node& node : graph.nodes) names.push_back(node.name);
    return names;
  }
};

TEST_F(NodeBuilderTest, InfersTypesAndKeepsTheName) {
  const Graph graph = replaced(two_nodes(), [](NodeBuilder& builder) {
    const ValueId sum = builder.add("Add", {builder.input(0), builder.number(1, builder.input(0))});
    EXPECT_EQ(builder.rank_of(sum), 1);
    EXPECT_EQ(builder.element_of(sum), DataType::Float32);
    builder.give(0, builder.add("Neg", {sum}));
  });
  EXPECT_THAT(names_of(graph), ElementsAre("first_Add", "first", "second"));
  EXPECT_THAT(outputs_of(graph, {{"x", floats({2}, {1, 5})}})[0].as<float>(), ElementsAre(-2, -6));
}

TEST_F(NodeBuilderTest, OutputsAreReadByLaterNodesToo) {
  GraphBuilder pair = builder();
  pair.input("x", float_type(Shape{2}))
      .node("split", "Split", {"x"}, {"y", "z"})
      .output("y")
      .output("z");
  const Graph graph = replaced(infer_types(pair.graph(), registry_, log_), [](NodeBuilder& b) {
    const ValueId negative = b.add("Neg", {b.input(0)});
    b.give(0, negative);
    b.give(1, b.add("Abs", {negative}));
  });
  const auto outputs = outputs_of(graph, {{"x", floats({2}, {1, -5})}});
  EXPECT_THAT(outputs[0].as<float>(), ElementsAre(-1, 5));
  EXPECT_THAT(outputs[1].as<float>(), ElementsAre(1, 5));
}

TEST_F(NodeBuilderTest, OneValueMayBeSeveralOutputsAndAnInput) {
  GraphBuilder pair = builder();
  pair.input("x", float_type(Shape{2}))
      .node("split", "Split", {"x"}, {"y", "z"})
      .output("y")
      .output("z");
  const Graph inferred = infer_types(pair.graph(), registry_, log_);
  const Graph same = replaced(inferred, [](NodeBuilder& builder) {
    builder.give(0, builder.input(0));
    builder.give(1, builder.input(0));
  });
  EXPECT_THAT(outputs_of(same, {{"x", floats({2}, {1, 2})}})[1].as<float>(), ElementsAre(1, 2));
  const Graph twice = replaced(inferred, [](NodeBuilder& builder) {
    const ValueId negative = builder.add("Neg", {builder.input(0)});
    builder.give(0, negative);
    builder.give(1, negative);
  });
  const auto outputs = outputs_of(twice, {{"x", floats({2}, {1, 2})}});
  EXPECT_THAT(outputs[0].as<float>(), ElementsAre(-1, -2));
  EXPECT_THAT(outputs[1].as<float>(), ElementsAre(-1, -2));
}

TEST_F(NodeBuilderTest, WhatIsNotCommittedLeavesNoNodes) {
  Graph graph = two_nodes();
  const std::vector<Node> nodes = std::exchange(graph.nodes, {});
  NodeBuilder builder(graph, registry_);
  builder.begin(nodes[0]);
  builder.add("Neg", {builder.input(0)});
  builder.begin(nodes[0]);
  builder.give(0, builder.add("Abs", {builder.input(0)}));
  builder.commit();
  ASSERT_EQ(graph.nodes.size(), 1);
  EXPECT_EQ(graph.nodes[0].op, "Abs");
}

}  // namespace
}  // namespace tessera
