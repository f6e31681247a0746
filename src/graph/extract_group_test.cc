#include "graph/extract_group.h"

#include <utility>

#include "base/errors/error_test.h"
#include "base/matchers_test.h"
#include "base/tensor/tensors_test.h"
#include "graph/verify.h"

namespace tessera {
namespace {

// x -> a -> (b, c); c and w -> d; d is the output.
class ExtractGroup : public testing::Test {
 protected:
  ExtractGroup() {
    const ValueId x = value("x");
    const ValueId w = value("w");
    graph_[w].constant = floats({2}, {1, 2});
    const ValueId a = value("a");
    const ValueId b = value("b");
    const ValueId c = value("c");
    const ValueId d = value("d");
    graph_.inputs = {x};
    graph_.outputs = {d};
    node({x}, {a});
    node({a, ValueId{}, x}, {b, c});
    node({c, w, b}, {d});
  }

  ValueId value(const std::string& name) {
    Value made;
    made.name = name;
    made.type = Type::tensor(DataType::Float32, Shape{2});
    return add_value(graph_, std::move(made));
  }

  void node(std::vector<ValueId> inputs, std::vector<ValueId> outputs) {
    Node made;
    made.name = graph_[outputs[0]].name;
    made.op = "Test";
    made.inputs = std::move(inputs);
    made.outputs = std::move(outputs);
    graph_.nodes.push_back(std::move(made));
  }

  Graph extract(std::vector<int32_t> nodes) const {
    std::vector<NodeId> ids;
    for (const int32_t node : nodes) ids.push_back({node});
    Graph group = extract_group(graph_, ids);
    EXPECT_EQ(explain_illegal(group), "");
    return group;
  }

  static std::vector<std::string> names(const Graph& graph, const std::vector<ValueId>& ids) {
    std::vector<std::string> result;
    for (const ValueId id : ids) result.push_back(id.is_none() ? "" : graph[id].name);
    return result;
  }

  Graph graph_;
};

TEST_F(ExtractGroup, InputsAndOutputsAreWhatCrossesItsBorder) {
  const Graph group = extract({1});
  EXPECT_THAT(names(group, group.inputs), ElementsAre("a", "x"));
  EXPECT_THAT(names(group, group.outputs), ElementsAre("b", "c"));
  EXPECT_THAT(names(group, group.nodes[0].inputs), ElementsAre("a", "", "x"));
  EXPECT_EQ(group.values.size(), 4U);
}

// A kernel writes it like the others.
TEST_F(ExtractGroup, WhatNothingReadsIsAnOutput) {
  graph_.nodes[2].inputs.pop_back();  // b
  const Graph group = extract({1});
  EXPECT_THAT(names(group, group.outputs), ElementsAre("b", "c"));
  const Graph larger = extract({1, 2});
  EXPECT_THAT(names(larger, larger.outputs), ElementsAre("b", "d"));
}

TEST_F(ExtractGroup, KeepsTheOrderOfTheGraph) {
  const Graph group = extract({2, 0, 1, 2});
  ASSERT_EQ(group.nodes.size(), 3U);
  EXPECT_EQ(group.nodes[0].name, "a");
  EXPECT_THAT(names(group, group.inputs), ElementsAre("x"));
  EXPECT_THAT(names(group, group.outputs), ElementsAre("d"));
}

TEST_F(ExtractGroup, ConstantsStayConstants) {
  const Graph group = extract({2});
  EXPECT_THAT(names(group, group.inputs), ElementsAre("c", "b"));
  const Value& constant = group[group.nodes[0].inputs[1]];
  EXPECT_EQ(constant.name, "w");
  EXPECT_EQ(constant.constant.data(), graph_[find_value(graph_, "w")].constant.data());
}

TEST_F(ExtractGroup, WhatIsKeptOrCapturedIsAnOutput) {
  graph_.kept = {find_value(graph_, "a")};
  EXPECT_THAT(names(extract({0, 1, 2}), extract({0, 1, 2}).outputs), ElementsAre("a", "d"));
  graph_.kept.clear();
  Body body;
  body.graph.captures = {{find_value(graph_, "b"), add_value(body.graph, {.name = "b"})}};
  node({}, {value("e")});
  graph_.nodes[3].bodies.push_back(body);
  graph_.outputs.push_back(find_value(graph_, "e"));
  EXPECT_THAT(names(extract({0, 1, 2}), extract({0, 1, 2}).outputs), ElementsAre("b", "d"));
}

TEST_F(ExtractGroup, BodiesOfTheGroupCaptureFromIt) {
  Body body;
  body.graph.captures = {{find_value(graph_, "b"), add_value(body.graph, {.name = "b"})},
                         {find_value(graph_, "x"), add_value(body.graph, {.name = "x"})}};
  node({}, {value("e")});
  graph_.nodes[3].bodies.push_back(body);
  graph_.outputs.push_back(find_value(graph_, "e"));
  const Graph group = extract({3});
  EXPECT_THAT(names(group, group.inputs), ElementsAre("b", "x"));
  EXPECT_EQ(group.nodes[0].bodies[0].graph.captures[1].outer, group.inputs[1]);
}

TEST_F(ExtractGroup, RefusesWhatIsNoGroup) {
  EXPECT_EQ(error_of([&] { extract({0, 7}); }),
            "InvalidArgument: group: expected nodes of the graph, found number 7");
  EXPECT_EQ(error_of([&] { extract({-1}); }),
            "InvalidArgument: group: expected nodes of the graph, found number -1");
  EXPECT_EQ(error_of([&] { extract({}); }),
            "InvalidArgument: group: expected an output that is read outside of the group, found "
            "none");
  graph_.nodes[0].is_removed = true;
  EXPECT_EQ(error_of([&] { extract({0}); }),
            "InvalidArgument: group: expected nodes of the graph, found number 0");
}

}  // namespace
}  // namespace tessera
