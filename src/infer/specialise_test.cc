#include "infer/specialise.h"

#include <gtest/gtest.h>

#include "ops/graph_test.h"

namespace tessera {
namespace {

const Dim kBatch = Dim::symbol("N");

ops::Registry test_registry() {
  ops::Registry registry;
  registry.add({.name = "Join",
                .versions = {1},
                .inputs = {{"X", "", ops::Arity::Variadic}},
                .outputs = {{"Y", ""}}});
  return registry;
}

// Reads a (Nx3), b (Nx4), a scalar and an input without rank; does not read (MxM).
Graph graph_with_inputs() {
  const ops::Registry registry = test_registry();
  GraphBuilder builder(registry);
  builder.input("a", float_type(Shape{kBatch, 3}))
      .input("b", float_type(Shape{kBatch, 4}))
      .input("scalar", Type::tensor(DataType::Int64, Shape{}))
      .input("rankless", float_type())
      .input("unread", float_type(Shape{Dim::symbol("M"), Dim::symbol("M")}))
      .node("join", "Join", {"a", "b", "scalar", "rankless"}, {"y"})
      .output("y");
  builder.declare("y", float_type(Shape{kBatch, 7}));
  Graph graph = builder.graph();
  graph[graph.outputs[0]].elements = {{kBatch}};
  return graph;
}

using Shapes = std::map<std::string, std::vector<int64_t>>;

TEST(Specialise, OneShapeGivesTheSymbolEverywhere) {
  const Graph graph =
      specialise(graph_with_inputs(), {{"b", {5, 4}}, {"rankless", {}}, {"scalar", {}}});
  EXPECT_EQ(text(value_of(graph, "a").type), "float32 5x3");
  EXPECT_EQ(text(value_of(graph, "b").type), "float32 5x4");
  EXPECT_EQ(text(value_of(graph, "rankless").type), "float32 scalar");
  EXPECT_EQ(text(value_of(graph, "unread").type), "float32 MxM");
  EXPECT_EQ(text(value_of(graph, "y").type), "float32 ?");
  EXPECT_EQ(value_of(graph, "y").elements, std::nullopt);
}

TEST(Specialise, AZeroIsANumberLikeAnyOther) {
  const Graph graph = specialise(graph_with_inputs(), {{"a", {0, 3}}, {"rankless", {2, 0}}});
  EXPECT_EQ(text(value_of(graph, "b").type), "float32 0x4");
}

struct Case {
  Shapes shapes;
  const char* expected;
};

const Case kRefusals[] = {
    {{{"c", {1}}},
     "InvalidArgument: input 'c': the model has no such input; its inputs are 'a', 'b', 'scalar', "
     "'rankless', 'unread'"},
    {{{"y", {1}}},
     "InvalidArgument: input 'y': the model has no such input; its inputs are 'a', 'b', 'scalar', "
     "'rankless', 'unread'"},
    {{{"a", {1, 3, 1}}},
     "InvalidArgument: input 'a': the model declares float32 Nx3, but the shape given is 1x3x1"},
    {{{"a", {1, 4}}},
     "InvalidArgument: input 'a': the model declares float32 Nx3, but the shape given is 1x4"},
    {{{"scalar", {1}}},
     "InvalidArgument: input 'scalar': the model declares int64 scalar, but the shape given is 1"},
    {{{"a", {2, 3}}, {"b", {5, 4}}},
     "InvalidArgument: input 'b': dimension 'N' is 5 here, but 2 in input 'a'; the model says that "
     "they are equal"},
    {{{"unread", {2, 3}}},
     "InvalidArgument: input 'unread': dimension 'M' is 3 here, but 2 in input 'unread'; the model "
     "says that they are equal"},
    {{{"rankless", {1}}},
     "InvalidArgument: input 'a': dimension 0 ('N') of float32 Nx3 is unknown; give the input's "
     "shape, on the command line with --shape a=1x3"},
    {{{"a", {1, 3}}},
     "InvalidArgument: input 'rankless': the model does not tell its number of dimensions; give "
     "its shape, for example rankless=1x3x224x224"},
    {{{"a", {-1, 3}}},
     "InvalidArgument: input 'a': shape -1x3: expected dimensions of at least 0, found -1"},
    {{{"rankless", {int64_t{1} << 40, int64_t{1} << 40}}},
     "InvalidArgument: input 'rankless': shape 1099511627776x1099511627776: the number of elements "
     "exceeds 64 bits"},
    {{{"a", {int64_t{1} << 59, 3}}, {"rankless", {}}},
     "InvalidArgument: input 'b': shape 576460752303423488x4: the number of bytes exceeds 64 "
     "bits"},
};

TEST(Specialise, WhatDoesNotFitIsNamed) {
  for (const Case& row : kRefusals) {
    EXPECT_EQ(error_of([&] { specialise(graph_with_inputs(), row.shapes); }), row.expected);
  }
}

TEST(Specialise, OnlyTensorsHaveShapes) {
  const ops::Registry registry = test_registry();
  GraphBuilder builder(registry);
  builder.input("s", Type::sequence(float_type())).node("join", "Join", {"s"}, {"y"}).output("y");
  EXPECT_EQ(error_of([&] { specialise(builder.graph(), {{"s", {1}}}); }),
            "InvalidArgument: input 's': expected no shape, as it is sequence(float32 ?), found 1");
  EXPECT_EQ(text(value_of(specialise(builder.graph(), {}), "s").type), "sequence(float32 ?)");
}

}  // namespace
}  // namespace tessera
