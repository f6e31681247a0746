#include "graph/compact.h"

#include "base/matchers_test.h"
#include "graph/verify.h"

namespace tessera {
namespace {

ValueId value(Graph& graph, const std::string& name) {
  Value made;
  made.name = name;
  made.type = Type::tensor(DataType::Float32, Shape{2});
  return add_value(graph, std::move(made));
}

void node(Graph& graph, const std::string& name, std::vector<ValueId> inputs,
          std::vector<ValueId> outputs) {
  Node made;
  made.name = name;
  made.op = "Test";
  made.inputs = std::move(inputs);
  made.outputs = std::move(outputs);
  graph.nodes.push_back(std::move(made));
}

std::vector<std::string> value_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Value& each : graph.values) names.push_back(each.name);
  return names;
}

TEST(Compact, DropsWhatWasCutLooseAndKeepsTheRestInOrder) {
  Graph graph;
  const ValueId unused = value(graph, "unused");
  const ValueId input = value(graph, "input");
  const ValueId inner = value(graph, "inner");
  const ValueId cut = value(graph, "cut");
  const ValueId output = value(graph, "output");
  graph.inputs = {input};
  graph.outputs = {output, output};
  node(graph, "first", {input, ValueId{}}, {inner});
  node(graph, "second", {inner}, {cut});
  node(graph, "third", {inner}, {ValueId{}, output});
  graph.nodes[1].is_removed = true;
  (void)unused;

  const Graph small = compact(graph);
  EXPECT_EQ(explain_illegal(small), "");
  EXPECT_THAT(value_names(small), ElementsAre("input", "inner", "output"));
  ASSERT_EQ(small.nodes.size(), 2U);
  EXPECT_EQ(small.nodes[1].name, "third");
  EXPECT_TRUE(small.nodes[0].inputs[1].is_none());
  EXPECT_TRUE(small.nodes[1].outputs[0].is_none());
  EXPECT_EQ(small[small.nodes[1].inputs[0]].name, "inner");
  EXPECT_EQ(small[small.nodes[1].outputs[1]].name, "output");
  EXPECT_THAT(small.outputs, testing::Each(find_value(small, "output")));
}

TEST(Compact, KeepsInputsThatNothingReadsAndValuesSomebodyWants) {
  Graph graph;
  value(graph, "dead");
  graph.inputs = {value(graph, "unread input")};
  const ValueId kept = value(graph, "kept");
  node(graph, "maker", {}, {kept, value(graph, "unread output")});
  graph.kept = {kept};
  const Graph small = compact(graph);
  EXPECT_EQ(explain_illegal(small), "");
  EXPECT_THAT(value_names(small), ElementsAre("unread input", "kept", "unread output"));
  EXPECT_EQ(small[small.kept[0]].name, "kept");
}

TEST(Compact, RenumbersWhatNestedGraphsCapture) {
  Graph graph;
  value(graph, "dead");
  const ValueId input = value(graph, "input");
  const ValueId output = value(graph, "output");
  graph.inputs = {input};
  graph.outputs = {output};
  node(graph, "branch", {}, {output});
  Body body;
  body.attribute = "then_branch";
  const ValueId inner = value(body.graph, "input");
  body.graph.captures = {{input, inner}};
  body.graph.outputs = {inner};
  graph.nodes[0].bodies.push_back(std::move(body));

  const Graph small = compact(graph);
  EXPECT_EQ(explain_illegal(small), "");
  EXPECT_EQ(small[small.nodes[0].bodies[0].graph.captures[0].outer].name, "input");
}

TEST(Graph, UsesAreCountedAndReplacedWhereverTheyAre) {
  Graph graph;
  const ValueId left = value(graph, "left");
  const ValueId right = value(graph, "right");
  const ValueId output = value(graph, "output");
  graph.inputs = {left, right};
  graph.outputs = {output, left};
  graph.kept = {left};
  node(graph, "both", {left, left, ValueId{}}, {output});
  Body body;
  body.graph.captures = {{left, value(body.graph, "inside")}};
  graph.nodes[0].bodies.push_back(std::move(body));
  EXPECT_THAT(use_counts(graph), ElementsAre(5, 0, 1));
  EXPECT_THAT(producers(graph), ElementsAre(NodeId{}, NodeId{}, NodeId{0}));

  replace_uses(graph, left, right);
  EXPECT_THAT(use_counts(graph), ElementsAre(0, 5, 1));
}

}  // namespace
}  // namespace tessera
