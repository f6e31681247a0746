#include "infer/specialise.h"

#include "graph/dim_names.h"
#include "ops/graph_test.h"

namespace tessera {
namespace {

const Dim kGivenBatch = Dim::symbol("N");

ops::Registry specialised_registry() {
  ops::Registry registry;
  registry.add({.name = "Join",
                .versions = {1},
                .inputs = {{"X", "", ops::Arity::Variadic}},
                .outputs = {{"Y", ""}}});
  return registry;
}

// Reads a (Nx3), b (Nx4), a scalar and an input without rank; does not read (MxM).
Graph graph_with_inputs() {
  const ops::Registry registry = specialised_registry();
  GraphBuilder builder(registry);
  builder.input("a", float_type(Shape{kGivenBatch, 3}))
      .input("b", float_type(Shape{kGivenBatch, 4}))
      .input("scalar", Type::tensor(DataType::Int64, Shape{}))
      .input("rankless", float_type())
      .input("unread", float_type(Shape{Dim::symbol("M"), Dim::symbol("M")}))
      .node("join", "Join", {"a", "b", "scalar", "rankless"}, {"y"})
      .output("y");
  builder.declare("y", float_type(Shape{kGivenBatch, 7}));
  Graph graph = builder.graph();
  graph[graph.outputs[0]].elements = {{kGivenBatch}};
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

struct SpecialisedCase {
  Shapes shapes;
  const char* expected;
};

const SpecialisedCase kRefusals[] = {
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
    {{{"unread", {2, 3}}},
     "InvalidArgument: input 'a': dimension 0 ('N') of float32 Nx3 is unknown; give the input's "
     "shape, for example a=1x3"},
    {{{"unread", {2, 3, 4}}},
     "InvalidArgument: input 'unread': the model declares float32 MxM, but the shape given is "
     "2x3x4"},
    {{{"rankless", {1}}},
     "InvalidArgument: input 'a': dimension 0 ('N') of float32 Nx3 is unknown; give the input's "
     "shape, for example a=1x3"},
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
  for (const SpecialisedCase& row : kRefusals) {
    EXPECT_EQ(error_of([&] { specialise(graph_with_inputs(), row.shapes); }), row.expected);
  }
}

// Reads a (NxN), b (Nx4) and c (N); does not read unread (Nx7), fixed (2).
Graph graph_with_names(bool has_occurrences) {
  const ops::Registry registry = specialised_registry();
  DimNames names;
  const auto next = [&] { return has_occurrences ? names.next("N") : kGivenBatch; };
  GraphBuilder builder(registry);
  builder.input("unread", float_type(Shape{next(), 7}))
      .input("a", float_type(Shape{next(), next()}))
      .input("b", float_type(Shape{next(), 4}))
      .input("c", float_type(Shape{next()}))
      .input("fixed", float_type(Shape{2}))
      .node("join", "Join", {"a", "b", "c"}, {"y"})
      .output("y");
  return builder.graph();
}

struct NameCase {
  const char* what;
  Shapes shapes;
  std::vector<std::string> types;    // of a, b, c
  std::vector<std::string> unequal;  // "N: a.0=2 b.0=3"
};

const NameCase kNames[] = {
    {"one size", {{"a", {2, 2}}}, {"2x2", "2x4", "2"}, {}},
    {"a size from another input", {{"a", {2, 2}}, {"c", {2}}}, {"2x2", "2x4", "2"}, {}},
    {"two sizes in one input",
     {{"a", {2, 3}}, {"b", {5, 4}}, {"c", {6}}},
     {"2x3", "5x4", "6"},
     {"N: a.0=2 a.1=3 b.0=5 c.0=6"}},
    {"two sizes in two inputs",
     {{"a", {2, 2}}, {"b", {5, 4}}, {"c", {2}}},
     {"2x2", "5x4", "2"},
     {"N: a.0=2 a.1=2 b.0=5 c.0=2"}},
    {"size 0",
     {{"a", {0, 0}}, {"b", {1, 4}}, {"c", {0}}},
     {"0x0", "1x4", "0"},
     {"N: a.0=0 a.1=0 b.0=1 c.0=0"}},
    {"what nobody reads counts for nothing",
     {{"a", {2, 2}}, {"unread", {9, 7}}},
     {"2x2", "2x4", "2"},
     {}},
};

std::vector<std::string> unequal_texts(const Graph& graph, const Shapes& shapes) {
  std::vector<std::string> texts;
  for (const UnequalDims& dims : find_unequal_dims(graph, shapes)) {
    std::string& text = texts.emplace_back(dims.name + ":");
    for (const UnequalDims::Place& place : dims.places) {
      text +=
          " " + place.input + "." + std::to_string(place.axis) + "=" + std::to_string(place.size);
    }
  }
  return texts;
}

TEST(Specialise, ANameMayHaveSeveralSizes) {
  for (const bool has_occurrences : {true, false}) {
    const Graph graph = graph_with_names(has_occurrences);
    for (const NameCase& row : kNames) {
      SCOPED_TRACE(row.what);
      const Graph bound = specialise(graph, row.shapes);
      for (size_t index = 0; index < row.types.size(); ++index) {
        const std::string name(1, static_cast<char>('a' + index));
        EXPECT_EQ(text(value_of(bound, name).type), "float32 " + row.types[index]);
      }
      const bool is_given = row.shapes.contains("unread");
      EXPECT_EQ(text(value_of(bound, "unread").type), is_given ? "float32 9x7" : "float32 Nx7");
      EXPECT_EQ(unequal_texts(graph, row.shapes), row.unequal);
    }
  }
}

TEST(Specialise, ASizeThatIsNotClearIsAsked) {
  EXPECT_EQ(error_of([] { specialise(graph_with_names(true), {{"a", {2, 3}}, {"b", {2, 4}}}); }),
            "InvalidArgument: input 'c': dimension 0 ('N') of float32 N is unknown; give the "
            "input's shape, for example c=1");
}

TEST(Specialise, NamesCanBeTakenAsEqual) {
  const Graph equal = with_equal_names(graph_with_names(true), specialised_registry());
  const Type& type = value_of(equal, "a").type;
  EXPECT_EQ((*type.shape)[0], (*type.shape)[1]);
  EXPECT_EQ((*type.shape)[0], (*value_of(equal, "c").type.shape)[0]);
}

TEST(Specialise, OnlyTensorsHaveShapes) {
  const ops::Registry registry = specialised_registry();
  GraphBuilder builder(registry);
  builder.input("s", Type::sequence(float_type())).node("join", "Join", {"s"}, {"y"}).output("y");
  EXPECT_EQ(error_of([&] { specialise(builder.graph(), {{"s", {1}}}); }),
            "InvalidArgument: input 's': expected no shape, as it is sequence(float32 ?), found 1");
  EXPECT_EQ(text(value_of(specialise(builder.graph(), {}), "s").type), "sequence(float32 ?)");
}

}  // namespace
}  // namespace tessera
