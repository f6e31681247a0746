#include "compile/compile.h"

#include "graph/dim_names.h"
#include "infer/specialise.h"
#include "ops/graph_test.h"

namespace tessera {
namespace {

class Binding : public testing::Test {
 protected:
  // x -> relu -> identity -> abs. Loading removes the identity.
  GraphBuilder chain(Shape shape) {
    GraphBuilder builder(all_ops());
    builder.input("x", float_type(std::move(shape)))
        .node("relu", "Relu", {"x"}, {"a"})
        .node("same", "Identity", {"a"}, {"b"})
        .node("abs", "Abs", {"b"}, {"y"})
        .output("y");
    return builder;
  }

  LoadedModel loaded(const GraphBuilder& builder) {
    return load_model(ImportedModel{.graph = builder.graph()}, {}, all_ops(), pool_, log_);
  }

  BoundGraph bound(const LoadedModel& model,
                   const std::map<std::string, std::vector<int64_t>>& shapes = {},
                   const std::vector<std::string>& fetch = {}) {
    return bind_graph(model, shapes, fetch, all_ops(), pool_, log_);
  }

  static std::vector<std::string> node_names(const Graph& graph) {
    std::vector<std::string> names;
    for (const Node& node : graph.nodes) names.push_back(node.name);
    return names;
  }

  ThreadPool pool_{1};
  Log log_{[](const std::string&) {}};
};

TEST_F(Binding, OfKnownShapesGivesWhatWasLoaded) {
  const LoadedModel model = loaded(chain(Shape{2, 3}));
  EXPECT_FALSE(model.binds_unchanged);
  const BoundGraph once = bound(model);
  EXPECT_TRUE(once.is_unchanged);
  EXPECT_THAT(node_names(once.graph), ElementsAre("relu", "abs"));
  // Binding to the shape that it already has changes nothing.
  EXPECT_TRUE(bound(model, {{"x", {2, 3}}}).is_unchanged);
}

TEST_F(Binding, RunsNoStageForWhatIsSettled) {
  LoadedModel model = loaded(chain(Shape{2, 3}));
  model.binds_unchanged = true;
  // Every stage would fail on this unknown op.
  model.graph.nodes.front().op = "NoSuchOp";
  for (const auto& shapes : {std::map<std::string, std::vector<int64_t>>{}, {{"x", {2, 3}}}}) {
    const BoundGraph again = bound(model, shapes);
    EXPECT_TRUE(again.is_unchanged);
    EXPECT_EQ(again.graph.nodes.front().op, "NoSuchOp");
  }
}

TEST_F(Binding, StillRefusesWhatASettledModelDoesNotHave) {
  LoadedModel model = loaded(chain(Shape{2, 3}));
  model.binds_unchanged = true;
  EXPECT_THROW(bound(model, {{"x", {2, 4}}}), Error);
  EXPECT_THROW(bound(model, {{"z", {2, 3}}}), Error);
  EXPECT_THROW(bound(model, {}, {"nothing"}), Error);
  const BoundGraph fetching = bound(model, {}, {"a"});
  EXPECT_FALSE(fetching.is_unchanged);
  EXPECT_EQ(fetching.graph.kept.size(), 1U);
}

TEST_F(Binding, OfNewShapesIsNews) {
  const LoadedModel model = loaded(chain(Shape{Dim::symbol("n"), 3}));
  const BoundGraph two = bound(model, {{"x", {2, 3}}});
  EXPECT_FALSE(two.is_unchanged);
  EXPECT_EQ(two.graph[two.graph.outputs[0]].type, float_type(Shape{2, 3}));
}

TEST_F(Binding, ThatForgetsKeptValuesIsNews) {
  LoadedModel model = load_model(ImportedModel{.graph = chain(Shape{2, 3}).graph()},
                                 {.keeps_all_values = true}, all_ops(), pool_, log_);
  EXPECT_EQ(model.graph.kept.size(), 3U);
  const BoundGraph once = bound(model);
  EXPECT_FALSE(once.is_unchanged);
  EXPECT_THAT(once.graph.kept, IsEmpty());
}

// x + z, whose first dimensions have one name; `unused` has it, too.
Graph sum_of_one_name(const ops::Registry& registry) {
  DimNames names;
  GraphBuilder builder(registry);
  builder.input("x", float_type(Shape{names.next("n"), 3}))
      .input("unused", float_type(Shape{names.next("n")}))
      .input("z", float_type(Shape{names.next("n"), 3}))
      .node("sum", "Add", {"x", "z"}, {"y"})
      .output("y");
  return builder.graph();
}

TEST_F(Binding, OneNameForTwoSizesIsAWarning) {
  std::vector<std::string> warnings;
  const Log log([&](const std::string& message) { warnings.push_back(message); });
  const LoadedModel model =
      load_model(ImportedModel{.graph = sum_of_one_name(all_ops())}, {}, all_ops(), pool_, log);
  for (const int64_t rows : {2, 5, 0}) {
    const BoundGraph both =
        bind_graph(model, {{"x", {1, 3}}, {"z", {rows, 3}}}, {}, all_ops(), pool_, log);
    EXPECT_EQ(both.graph[both.graph.outputs[0]].type, float_type(Shape{rows, 3}));
  }
  EXPECT_THAT(warnings, ElementsAre("the model gives one name, 'n', to dimensions that are not "
                                    "always equal (dimension 0 of input 'x', dimension 0 of input "
                                    "'z'); each counts for itself"));
}

TEST_F(Binding, ANodeThatNeedsEqualSizesIsNamed) {
  const LoadedModel model =
      load_model(ImportedModel{.graph = sum_of_one_name(all_ops())}, {}, all_ops(), pool_, log_);
  EXPECT_EQ(
      error_of([&] { bound(model, {{"x", {2, 3}}, {"z", {4, 3}}}); }),
      "InvalidArgument: node 'sum' (Add), input 'B': expected a shape that broadcasts with "
      "2x3, found 4x3; the model calls several dimensions 'n', but they are 2 (dimension 0 of "
      "input 'x'), 4 (dimension 0 of input 'z')");
}

TEST_F(Binding, TheShapeOfAnInputThatNobodyReadsIsNoNews) {
  Graph graph = chain(Shape{2, 3}).graph();
  Value unused;
  unused.name = "unused";
  unused.type = float_type(Shape{Dim::symbol("n"), 3});
  graph.inputs.push_back(add_value(graph, std::move(unused)));
  LoadedModel model = load_model(ImportedModel{.graph = graph}, {}, all_ops(), pool_, log_);
  model.binds_unchanged = true;
  EXPECT_TRUE(bound(model, {{"unused", {7, 3}}}).is_unchanged);
  EXPECT_THROW(bound(model, {{"unused", {7, 4}}}), Error);
}

TEST_F(Binding, NamesAreEqualForReaders) {
  const Graph graph = sum_of_one_name(all_ops());
  const LoadedModel model = load_model(ImportedModel{.graph = graph}, {}, all_ops(), pool_, log_);
  EXPECT_NE(text(model.graph[model.graph.outputs[0]].type), "float32 nx3");
  const Graph equal = with_equal_names(model.graph, all_ops());
  EXPECT_EQ(text(equal[equal.outputs[0]].type), "float32 nx3");
}

}  // namespace
}  // namespace tessera
