#include "infer/infer.h"

#include "base/tensor/tensors_test.h"
#include "ops/graph_test.h"

namespace tessera {
namespace {

// Ops that exercise one behaviour of the stage each. The rules of real ops have tests of their own.
ops::Registry test_registry() {
  ops::Registry registry;
  const auto add = [&](const char* name, ops::InferRule rule) {
    registry.add({.name = name,
                  .versions = {1},
                  .inputs = {{"X", "T"}},
                  .outputs = {{"Y", "T"}},
                  .type_variables = {{"T", ops::kNumericTypes}},
                  .infer = rule});
  };
  add("Same", [](ops::InferContext& context) {
    context.set_output(0, context.element(0), context.input(0).type.shape);
    context.set_elements(0, context.input(0).elements);
  });
  add("Silent", [](ops::InferContext&) {});
  add("Rankless", [](ops::InferContext& context) { context.set_output(0, context.element(0)); });
  add("Square", [](ops::InferContext& context) {
    Shape shape = *context.shape(0);
    for (Dim& dim : shape) dim = multiply(dim, dim);
    context.set_output(0, context.element(0), std::move(shape));
  });
  add("Tripled", [](ops::InferContext& context) {
    Shape shape = *context.shape(0);
    shape.insert(shape.end(), 2, shape[0]);
    context.set_output(0, context.element(0), std::move(shape));
  });
  add("Negative",
      [](ops::InferContext& context) { context.set_output(0, context.element(0), Shape{2, -1}); });
  add("Refusing", [](ops::InferContext& context) { context.fail("expected better"); });
  add("Three", [](ops::InferContext& context) {
    context.set_output(0, context.element(0));
    context.set_elements(0, {{1, 2, 3}});
  });
  ops::Op shape_of = {.name = "ShapeOf",
                      .versions = {1},
                      .inputs = {{"X", "T"}},
                      .outputs = {{"Y", "I"}},
                      .type_variables = {{"T", ops::kAllTypes}, {"I", ops::kInt64Type}}};
  shape_of.infer = [](ops::InferContext& context) {
    const Shape& shape = *context.shape(0);
    context.set_output(0, DataType::Int64, Shape{static_cast<int64_t>(shape.size())});
    context.set_elements(0, shape);
  };
  registry.add(shape_of);
  registry.add({.name = "Later", .versions = {1}, .inputs = {{"X", "T"}}, .outputs = {{"Y", "T"}}});
  return registry;
}

class Infer : public testing::Test {
 protected:
  Graph infer(const InferOptions& options = {}) {
    const Graph inferred = infer_types(builder_.graph(), registry_, log_, options);
    EXPECT_EQ(explain_illegal(inferred), "");
    return inferred;
  }
  std::string infer_error(const InferOptions& options = {}) {
    return error_of([&] { infer_types(builder_.graph(), registry_, log_, options); });
  }

  ops::Registry registry_ = test_registry();
  GraphBuilder builder_{registry_};
  std::vector<std::string> warnings_;
  Log log_{[this](const std::string& message) { warnings_.push_back(message); }};
};

TEST_F(Infer, TypesAndElementsFlowFromTheInputs) {
  builder_.input("x", float_type(Shape{Dim::symbol("N"), 3}))
      .node("a", "Same", {"x"}, {"y"})
      .node("b", "ShapeOf", {"y"}, {"shape"})
      .node("c", "Same", {"shape"}, {"z"})
      .output("z");
  const Graph graph = infer();
  EXPECT_EQ(text(value_of(graph, "y").type), "float32 Nx3");
  EXPECT_EQ(text(value_of(graph, "z").type), "int64 2");
  EXPECT_EQ(value_of(graph, "z").elements, (std::vector<Dim>{Dim::symbol("N"), 3}));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(Infer, ConstantsBringTheirElements) {
  const std::vector<int64_t> elements = {4, -1};
  builder_.constant("c", ints({2}, elements)).node("a", "Same", {"c"}, {"y"}).output("y");
  EXPECT_EQ(value_of(infer(), "y").elements, (std::vector<Dim>{4, -1}));
}

TEST_F(Infer, DeclaredTypesFillWhatRulesCannotTell) {
  builder_.input("x", float_type(Shape{2}))
      .node("a", "Silent", {"x"}, {"y"})
      .node("b", "Rankless", {"y"}, {"z"})
      .node("c", "Later", {"z"}, {"w"})
      .node("d", "Silent", {"x"}, {"unknown"})
      .output("w");
  builder_.declare("y", float_type(Shape{5}));
  builder_.declare("z", float_type(Shape{6, Dim::symbol("M")}));
  builder_.declare("w", float_type(Shape{7}));
  const Graph graph = infer();
  EXPECT_EQ(text(value_of(graph, "y").type), "float32 5");
  EXPECT_EQ(text(value_of(graph, "z").type), "float32 6xM");
  EXPECT_EQ(text(value_of(graph, "w").type), "float32 7");
  EXPECT_EQ(text(value_of(graph, "unknown").type), "unknown");
}

TEST_F(Infer, AContradictingElementTypeIsAnError) {
  builder_.input("x", float_type(Shape{2})).node("a", "Same", {"x"}, {"y"}).output("y");
  builder_.declare("y", Type::tensor(DataType::Int64, Shape{2}));
  EXPECT_EQ(infer_error(),
            "InvalidModel: node 'a' (Same), output 'y': the model declares int64 2, but float32 2 "
            "follows from the node's inputs");
}

TEST_F(Infer, AContradictingShapeIsAWarningUnlessStrict) {
  builder_.input("x", float_type(Shape{2, 3})).node("a", "Same", {"x"}, {"y"}).output("y");
  builder_.declare("y", float_type(Shape{2, 4}));
  EXPECT_EQ(text(value_of(infer(), "y").type), "float32 2x3");
  EXPECT_THAT(warnings_,
              ElementsAre("node 'a' (Same), output 'y': the model declares float32 2x4, but "
                          "float32 2x3 follows from the node's inputs; the latter counts"));
  EXPECT_EQ(infer_error({.is_strict = true}),
            "InvalidModel: node 'a' (Same), output 'y': the model declares float32 2x4, but "
            "float32 2x3 follows from the node's inputs");
}

TEST_F(Infer, ShapesThatNoMemoryCouldHoldAreErrors) {
  const int64_t large = int64_t{1} << 21;
  builder_.input("x", float_type(Shape{large})).node("a", "Tripled", {"x"}, {"y"}).output("y");
  EXPECT_EQ(infer_error(),
            "InvalidModel: node 'a' (Tripled), output 'y': shape 2097152x2097152x2097152: the "
            "number of elements exceeds 64 bits");

  GraphBuilder negative(registry_);
  negative.input("x", float_type(Shape{1})).node("a", "Negative", {"x"}, {"y"}).output("y");
  EXPECT_EQ(error_of([&] { infer_types(negative.graph(), registry_, log_); }),
            "InvalidModel: node 'a' (Negative), output 'y': expected dimensions of at least 0, "
            "found 2x-1");

  GraphBuilder input(registry_);
  input.input("x", float_type(Shape{int64_t{1} << 40, int64_t{1} << 40}));
  EXPECT_THAT(error_of([&] { infer_types(input.graph(), registry_, log_); }),
              StartsWith("InvalidModel: graph input 'x': shape 1099511627776x"));
}

TEST_F(Infer, ErrorsOfRulesNameTheNode) {
  builder_.input("x", float_type(Shape{int64_t{1} << 40}))
      .node("a", "Square", {"x"}, {"y"})
      .output("y");
  EXPECT_EQ(infer_error(),
            "InvalidModel: node 'a' (Square): dimension 1099511627776*1099511627776: the result "
            "exceeds 64 bits");

  GraphBuilder refusing(registry_);
  refusing.input("x", float_type(Shape{1})).node("b", "Refusing", {"x"}, {"y"}).output("y");
  EXPECT_EQ(error_of([&] { infer_types(refusing.graph(), registry_, log_); }),
            "InvalidModel: node 'b' (Refusing): expected better");
}

TEST_F(Infer, ADeclaredShapeThatDoesNotFitTheElementsDropsThem) {
  builder_.input("x", Type::tensor(DataType::Int64, Shape{1}))
      .node("a", "Three", {"x"}, {"y"})
      .output("y");
  builder_.declare("y", Type::tensor(DataType::Int64, Shape{2}));
  EXPECT_EQ(value_of(infer(), "y").elements, std::nullopt);
}

TEST_F(Infer, InferringTwiceChangesNothing) {
  builder_.input("x", float_type(Shape{Dim::symbol("N"), 3}))
      .node("a", "Square", {"x"}, {"y"})
      .node("b", "ShapeOf", {"y"}, {"z"})
      .output("z");
  const Graph once = infer();
  const Graph twice = infer_types(once, registry_, log_, {.is_strict = true});
  for (const char* name : {"y", "z"}) {
    EXPECT_EQ(value_of(once, name).type, value_of(twice, name).type);
    EXPECT_EQ(value_of(once, name).elements, value_of(twice, name).elements);
  }
}

TEST_F(Infer, NestedGraphsSeeWhatTheyCapture) {
  builder_.input("x", float_type(Shape{2, 3})).node("a", "Later", {"x"}, {"y"}).output("y");
  Graph graph = builder_.graph();
  GraphBuilder inside(registry_);
  inside.capture(graph.inputs[0], "outside")
      .node("inner", "Same", {"outside"}, {"result"})
      .output("result");
  Body body;
  body.attribute = "body";
  body.graph = inside.graph();
  graph.nodes[0].bodies.push_back(std::move(body));
  const Graph inferred = infer_types(graph, registry_, log_);
  EXPECT_EQ(text(value_of(inferred.nodes[0].bodies[0].graph, "result").type), "float32 2x3");
}

using Outcome = MergedType::Outcome;

const Dim kBatch = Dim::symbol("batch");      // a symbol of a graph input
const Dim kFound = Dim::symbol("found(nz)");  // a symbol that no input determines
const Dim kOther = Dim::symbol("other");

struct Case {
  const char* name;
  Type declared;
  Type inferred;
  Type merged;
  Outcome outcome = Outcome::Agrees;
};

const Case kCases[] = {
    {"nothing inferred", float_type(Shape{2}), {}, float_type(Shape{2})},
    {"nothing declared", {}, float_type(Shape{2}), float_type(Shape{2})},
    {"declared rank", float_type(Shape{2, kOther}), float_type(), float_type(Shape{2, kOther})},
    {"inferred rank", float_type(), float_type(Shape{kBatch}), float_type(Shape{kBatch})},
    {"declared element", float_type(), Type::tensor(DataType::Undefined, Shape{2}),
     float_type(Shape{2})},
    {"declared number", float_type(Shape{7}), float_type(Shape{kFound}), float_type(Shape{7})},
    {"inferred number", float_type(Shape{kOther}), float_type(Shape{7}), float_type(Shape{7})},
    {"an input's symbol stays", float_type(Shape{1}), float_type(Shape{kBatch}),
     float_type(Shape{kBatch})},
    {"what derives from it stays", float_type(Shape{4}), float_type(Shape{multiply(kBatch, 4)}),
     float_type(Shape{multiply(kBatch, 4)})},
    {"a word is whole", float_type(Shape{4}), float_type(Shape{Dim::symbol("batches")}),
     float_type(Shape{4})},
    {"a digest stays", float_type(Shape{4}), float_type(Shape{Dim::symbol("~12ab")}),
     float_type(Shape{Dim::symbol("~12ab")})},
    {"of two symbols the inferred", float_type(Shape{kOther}), float_type(Shape{kBatch}),
     float_type(Shape{kBatch})},
    {"rank", float_type(Shape{2}), float_type(Shape{2, 1}), float_type(Shape{2, 1}),
     Outcome::ShapeContradicts},
    {"number", float_type(Shape{2, 3}), float_type(Shape{kFound, 4}), float_type(Shape{kFound, 4}),
     Outcome::ShapeContradicts},
    {"element", Type::tensor(DataType::Int64), float_type(Shape{2}), float_type(Shape{2}),
     Outcome::ElementContradicts},
    {"kind", Type::sequence(float_type()), float_type(), float_type(), Outcome::ElementContradicts},
};

TEST(MergeTypes, TakesTheMorePreciseAndTellsContradictions) {
  for (const Case& row : kCases) {
    const MergedType merged = merge_types(row.declared, row.inferred, {"batch"});
    EXPECT_EQ(merged.outcome, row.outcome) << row.name;
    EXPECT_EQ(text(merged.type), text(row.merged)) << row.name;
  }
}

}  // namespace

}  // namespace tessera
