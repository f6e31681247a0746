#include "graph/verify.h"

#include <functional>

#include "base/errors/error_test.h"

namespace tessera {
namespace {

// input --first--> inner --second(weight)--> output, where `second` has a body that reads `inner`.
Graph legal_graph() {
  Graph graph;
  for (const char* name : {"input", "inner", "output", "weight"}) {
    Value value;
    value.name = name;
    value.type = Type::tensor(DataType::Float32, Shape{2});
    add_value(graph, std::move(value));
  }
  graph.values[3].constant = Tensor(DataType::Float32, {2});
  graph.inputs = {{0}};
  graph.outputs = {{2}, {2}, {0}, {3}};
  graph.kept = {{1}};
  Node first;
  first.name = "first";
  first.op = "Test";
  first.inputs = {{0}, {}};
  first.outputs = {{1}};
  Node second = first;
  second.name = "second";
  second.inputs = {{1}, {3}};
  second.outputs = {{}, {2}};
  Body body;
  body.attribute = "then_branch";
  Value inside;
  inside.name = "inner";
  body.graph.captures = {{{1}, add_value(body.graph, inside)}};
  body.graph.outputs = {{0}};
  second.bodies.push_back(body);
  graph.nodes = {first, second};
  return graph;
}

struct DamageCase {
  const char* expected;
  std::function<void(Graph&)> damage;
};

const DamageCase kCases[] = {
    {"", [](Graph&) {}},
    {"node 'first' (Test) reads value 'inner' before it is made",
     [](Graph& graph) { graph.nodes[0].inputs[0] = {1}; }},
    {"node 'second' (Test) reads value 'inner' before it is made",
     [](Graph& graph) { std::swap(graph.nodes[0], graph.nodes[1]); }},
    {"node 'first' (Test) refers to value 9", [](Graph& graph) { graph.nodes[0].inputs[0] = {9}; }},
    {"a graph output refers to value -1", [](Graph& graph) { graph.outputs[0] = {}; }},
    {"a graph output reads value 'inner' before it is made",
     [](Graph& graph) {
       graph.nodes.clear();
       graph.outputs = {{1}};
     }},
    {"a kept value refers to value 4", [](Graph& graph) { graph.kept[0] = {4}; }},
    {"value 'inner' is made twice", [](Graph& graph) { graph.nodes[1].outputs[0] = {1}; }},
    {"value 'weight' is made twice", [](Graph& graph) { graph.nodes[1].outputs[0] = {3}; }},
    {"value 'input' is made twice", [](Graph& graph) { graph.inputs = {{0}, {0}}; }},
    {"two values are called 'input'", [](Graph& graph) { graph.values[1].name = "input"; }},
    {"value 1 has no name", [](Graph& graph) { graph.values[1].name.clear(); }},
    {"two nodes are called 'first'", [](Graph& graph) { graph.nodes[1].name = "first"; }},
    {"node 'first' (Test) is marked as removed",
     [](Graph& graph) { graph.nodes[0].is_removed = true; }},
    {"constant 'weight' is not of its own type",
     [](Graph& graph) { graph.values[3].type.shape = Shape{3}; }},
    {"constant 'weight' is not of its own type",
     [](Graph& graph) { graph.values[3].type.element = DataType::Int32; }},
    {"node 'second' (Test), then_branch: a graph output refers to value 7",
     [](Graph& graph) { graph.nodes[1].bodies[0].graph.outputs[0] = {7}; }},
    {"node 'second' (Test) reads value 'output' before it is made",
     [](Graph& graph) { graph.nodes[1].bodies[0].graph.captures[0].outer = {2}; }},
};

TEST(Verify, ExplainsWhatIsIllegal) {
  for (const DamageCase& row : kCases) {
    Graph graph = legal_graph();
    row.damage(graph);
    EXPECT_EQ(explain_illegal(graph), row.expected);
  }
}

TEST(Verify, ThrowsWithTheStage) {
  Graph graph = legal_graph();
  EXPECT_NO_THROW(verify(graph, "import"));
  graph.nodes[1].name = "first";
  EXPECT_EQ(error_of([&] { verify(graph, "import"); }),
            "Internal: graph after import: two nodes are called 'first'");
}

}  // namespace
}  // namespace tessera
