#include "price/group_text.h"

#include "base/tensor/tensors_test.h"
#include "graph/extract_group.h"
#include "ops/graph_test.h"
#include "price/product_graph_test.h"

namespace tessera::tuning {
namespace {

class GroupTexts : public ProductGraphs {
 protected:
  std::string text_of(const Graph& graph) { return group_text(graph, registry_)->text; }
};

TEST_F(GroupTexts, KnowNeitherNamesNorWeights) {
  EXPECT_EQ(text_of(product("a", 1)), text_of(product("b", 2)));
  EXPECT_EQ(text_of(product("a", 1)),
            "i0 float32 2x4, c0 float32 4x3: v0=MatMul.13(i0,c0); v1=Relu.14(v0) -> v1");
}

TEST_F(GroupTexts, TellSizesAndAttributesApart) {
  EXPECT_NE(text_of(product("a", 1)), text_of(product("a", 1, 5)));
}

TEST_F(GroupTexts, HoldTheElementsOfParameters) {
  const auto scaled = [&](float by) {
    GraphBuilder builder(registry_);
    builder.input("x", float_type(Shape{4}))
        .constant("by", floats({1}, {by}))
        .node("scale", "Mul", {"x", "by"}, {"y"})
        .output("y");
    Graph graph = builder.graph();
    graph[find_value(graph, "y")].type = float_type(Shape{4});
    return text_of(graph);
  };
  EXPECT_EQ(scaled(2), scaled(2));
  EXPECT_NE(scaled(2), scaled(3));
}

TEST_F(GroupTexts, AreNotThereForWhatCannotBeMeasured) {
  Graph graph = product("a", 1);
  graph[find_value(graph, "az")].type = {};
  EXPECT_FALSE(group_text(graph, registry_).has_value());
}

TEST_F(GroupTexts, StructuresKnowNeitherNamesNorWeightsNorSmallParameters) {
  const auto structure = [&](const Graph& graph, ValueTypes types = ValueTypes::LeftOut) {
    return structure_text(graph, types).text;
  };
  EXPECT_EQ(structure(product("a", 1)), structure(product("b", 2)));
  EXPECT_EQ(structure(product("a", 1)),
            "i0, c0 float32 4x3, in i0: v0=MatMul.13(i0,c0); "
            "v1=Relu.14(v0) -> v1");
  EXPECT_NE(structure(product("a", 1)), structure(product("a", 1, 5)));
  Graph unknown = product("a", 1);
  unknown[find_value(unknown, "az")].type = {};
  EXPECT_EQ(structure(unknown), structure(product("a", 1)));
  EXPECT_EQ(structure(unknown, ValueTypes::Written),
            structure(product("a", 1), ValueTypes::Written));
  Graph kept = product("a", 1);
  kept.kept.push_back(find_value(kept, "ay"));
  EXPECT_NE(structure(kept), structure(product("a", 1)));
}

TEST_F(GroupTexts, StructuresHoldOperandsInTheirOrderAndWholeNumbers) {
  const auto difference = [&](bool is_swapped) {
    GraphBuilder builder(registry_);
    builder.input("x", float_type(Shape{4})).input("y", float_type(Shape{4}));
    const std::vector<std::string> operands =
        is_swapped ? std::vector<std::string>{"y", "x"} : std::vector<std::string>{"x", "y"};
    return structure_text(builder.node("d", "Sub", operands, {"z"}).output("z").graph(),
                          ValueTypes::LeftOut)
        .text;
  };
  EXPECT_NE(difference(true), difference(false));
  const auto reshaped = [&](int64_t rows) {
    GraphBuilder builder(registry_);
    builder.input("x", float_type(Shape{12}))
        .constant("to", ints({2}, {rows, int64_t{-1}}))
        .node("r", "Reshape", {"x", "to"}, {"y"})
        .output("y");
    return structure_text(builder.graph(), ValueTypes::LeftOut).text;
  };
  EXPECT_EQ(reshaped(2), reshaped(2));
  EXPECT_NE(reshaped(2), reshaped(3));
}

TEST_F(GroupTexts, NameLayoutsByPort) {
  const Graph graph = product("a", 1);
  tessera_pack pack = {};
  pack.id = "packed";
  Candidate candidate;
  candidate.inputs = {{.value = find_value(graph, "ax"), .layout = kDefaultLayout},
                      {.value = find_value(graph, "aw"), .layout = kDefaultLayout, .pack = &pack}};
  candidate.outputs = {{.value = find_value(graph, "az"), .layout = kDefaultLayout}};
  EXPECT_EQ(layouts_text(candidate, graph, LayoutTable({}), graph, *group_text(graph, registry_)),
            "i0=row_major c0=row_major:packed -> v1=row_major");
}

}  // namespace
}  // namespace tessera::tuning
