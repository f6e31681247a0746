#include "rewrite/passes.h"

#include "rewrite/rewrite_test.h"

namespace tessera {
namespace {

class RemoveIdentities : public PassTest {};

// One op between two Relus, with an input "x" of `shape` and optionally a constant second input.
struct Case {
  const char* name;
  int opset;
  const char* op;
  Shape shape;
  std::vector<Tensor> constants;
  Attributes attributes;
  bool is_removed;
};

const Dim kBatch = Dim::symbol("N");

const Case kCases[] = {
    {"identity", 17, "Identity", {kBatch, 3}, {}, {}, true},
    {"dropout of old", 7, "Dropout", {2, 3}, {}, {}, true},
    {"dropout", 17, "Dropout", {2, 3}, {}, {}, true},
    {"dropout that does not train",
     17,
     "Dropout",
     {2, 3},
     {floats({}, {0.5F}), bool_scalar(false)},
     {},
     true},
    {"dropout that trains",
     17,
     "Dropout",
     {2, 3},
     {floats({}, {0.5F}), bool_scalar(true)},
     {},
     false},
    {"cast to itself", 17, "Cast", {kBatch}, {}, attributes_of({{"to", 1}}), true},
    {"transpose of nothing",
     17,
     "Transpose",
     {kBatch, 3, 4},
     {},
     attributes_of({{"perm", {0, 1, 2}}}),
     true},
    {"transpose", 17, "Transpose", {2, 2}, {}, attributes_of({{"perm", {1, 0}}}), false},
    {"transpose by default", 17, "Transpose", {2, 2}, {}, {}, false},
    {"transpose of a vector", 17, "Transpose", {2}, {}, {}, true},
    {"reshape to itself", 17, "Reshape", {2, 3}, {ints({2}, {2, -1})}, {}, true},
    {"reshape", 17, "Reshape", {2, 3}, {ints({2}, {3, 2})}, {}, false},
    {"reshape of the unknown", 17, "Reshape", {kBatch, 3}, {ints({2}, {-1, 3})}, {}, false},
    {"flatten of a matrix", 17, "Flatten", {2, 3}, {}, {}, true},
    {"flatten", 17, "Flatten", {2, 3, 4}, {}, {}, false},
    {"squeeze of nothing", 17, "Squeeze", {2, 3}, {}, {}, true},
    {"squeeze", 17, "Squeeze", {2, 1}, {}, {}, false},
    {"unsqueeze", 17, "Unsqueeze", {2}, {ints({1}, {0})}, {}, false},
    {"expand to itself", 17, "Expand", {2, 3}, {ints({1}, {1})}, {}, true},
    {"expand", 17, "Expand", {1, 3}, {ints({2}, {2, 1})}, {}, false},
};

TEST_F(RemoveIdentities, RemovesWhatChangesNothing) {
  for (const Case& row : kCases) {
    SCOPED_TRACE(row.name);
    GraphBuilder graph = builder(row.opset);
    graph.input("x", float_type(row.shape)).node("before", "Relu", {"x"}, {"a"});
    std::vector<std::string> inputs = {"a"};
    for (const Tensor& constant : row.constants) {
      inputs.push_back("constant " + std::to_string(inputs.size()));
      graph.constant(inputs.back(), constant);
    }
    graph.node("between", row.op, inputs, {"b"}, row.attributes)
        .node("after", "Relu", {"b"}, {"y"})
        .output("y");
    const Graph result = run(remove_identities, graph);
    if (row.is_removed) {
      EXPECT_THAT(node_names(result), ElementsAre("before", "after"));
      EXPECT_THAT(changes_, ElementsAre("node 'between' (" + std::string(row.op) +
                                        ") removed: it changes nothing"));
    } else {
      EXPECT_THAT(node_names(result), ElementsAre("before", "between", "after"));
      EXPECT_THAT(changes_, IsEmpty());
    }
  }
}

// A declaration of the model may turn out wrong at run time, so it justifies no removal.
TEST_F(RemoveIdentities, WhatOnlyRunningShowsStays) {
  GraphBuilder reshape = builder();
  reshape.input("x", float_type(Shape{2, 3}))
      .input("shape", Type::tensor(DataType::Int64, Shape{2}));
  reshape.declare("y", float_type(Shape{2, 3}));
  reshape.node("reshape", "Reshape", {"x", "shape"}, {"y"}).node("end", "Relu", {"y"}, {"z"});
  reshape.output("z");
  EXPECT_THAT(node_names(run(remove_identities, reshape)), ElementsAre("reshape", "end"));

  GraphBuilder transpose = builder();
  transpose.input("x", Type::tensor(DataType::Float32));
  transpose.node("transpose", "Transpose", {"x"}, {"y"}, attributes_of({{"perm", {0, 1}}}))
      .node("end", "Relu", {"y"}, {"z"})
      .output("z");
  EXPECT_THAT(node_names(run(remove_identities, transpose)), ElementsAre("transpose", "end"));
}

TEST_F(RemoveIdentities, AChainGoesAtOnce) {
  GraphBuilder graph = builder();
  graph.input("x", float_type(Shape{2}))
      .node("1", "Identity", {"x"}, {"a"})
      .node("2", "Identity", {"a"}, {"b"})
      .node("3", "Identity", {"b"}, {"c"})
      .node("end", "Add", {"a", "c"}, {"y"})
      .output("y");
  const Graph result = run(remove_identities, graph);
  ASSERT_THAT(node_names(result), ElementsAre("end"));
  EXPECT_THAT(result.nodes[0].inputs, testing::Each(result.inputs[0]));
}

TEST_F(RemoveIdentities, OutputsKeepTheirNames) {
  GraphBuilder graph = builder();
  graph.input("x", float_type(Shape{2}))
      .node("start", "Relu", {"x"}, {"a"})
      .node("i", "Identity", {"a"}, {"y"})
      .node("reader", "Neg", {"a"}, {"z"})
      .output("y")
      .output("z");
  const Graph result = run(remove_identities, graph);
  EXPECT_THAT(node_names(result), ElementsAre("start", "reader"));
  EXPECT_EQ(result[result.outputs[0]].name, "y");
  EXPECT_EQ(result.nodes[0].outputs[0], result.outputs[0]);
  EXPECT_EQ(result.nodes[1].inputs[0], result.outputs[0]);
}

TEST_F(RemoveIdentities, TwoNamesThatMustLiveKeepTheNodeBetweenThem) {
  GraphBuilder graph = builder();
  graph.input("x", float_type(Shape{2}))
      .constant("c", floats({2}, {1, 2}))
      .node("from input", "Identity", {"x"}, {"y"})
      .node("from constant", "Identity", {"c"}, {"z"})
      .node("start", "Relu", {"x"}, {"a"})
      .node("from kept", "Identity", {"a"}, {"w"})
      .node("second", "Identity", {"w"}, {"v"})
      .output("y")
      .output("z")
      .output("w")
      .output("v")
      .keep("a");
  const Graph result = run(remove_identities, graph);
  EXPECT_EQ(result.nodes.size(), 5U);
  EXPECT_THAT(changes_, IsEmpty());
}

TEST_F(RemoveIdentities, AKeptResultTakesTheNameOfItsSource) {
  GraphBuilder graph = builder();
  graph.input("x", float_type(Shape{2}))
      .node("start", "Relu", {"x"}, {"a"})
      .node("i", "Identity", {"a"}, {"b"})
      .node("j", "Identity", {"b"}, {"k"})
      .node("end", "Neg", {"b"}, {"y"})
      .output("y")
      .keep("k");
  const Graph result = run(remove_identities, graph);
  EXPECT_THAT(node_names(result), ElementsAre("start", "end"));
  EXPECT_EQ(result[result.kept[0]].name, "k");
}

TEST_F(RemoveIdentities, ADropoutWhoseMaskIsReadStays) {
  GraphBuilder graph = builder();
  graph.input("x", float_type(Shape{2}))
      .node("drop", "Dropout", {"x"}, {"a", "mask"})
      .node("end", "Neg", {"a"}, {"y"})
      .output("y")
      .output("mask");
  EXPECT_THAT(node_names(run(remove_identities, graph)), ElementsAre("drop", "end"));
}

TEST_F(RemoveIdentities, StateStays) {
  GraphBuilder graph = builder();
  graph.input("x", float_type(Shape{2}))
      .node("i", "Identity", {"x"}, {"a"})
      .node("end", "Neg", {"a"}, {"y"})
      .output("y");
  Graph with_state = graph.graph();
  with_state[with_state.inputs[0]].is_state = true;
  EXPECT_THAT(node_names(run(remove_identities, with_state)), ElementsAre("i", "end"));
}

}  // namespace
}  // namespace tessera
