#include "codegen/lowering/fusion_role.h"
#include "infer/infer.h"
#include "ops/graph_test.h"

namespace tessera::codegen {
namespace {

using Numbers = std::vector<int64_t>;

Graph inferred(const GraphBuilder& builder, const ops::Registry& registry) {
  return infer_types(builder.graph(), registry, Log());
}

struct SliceCase {
  const char* name;
  Numbers starts;
  Numbers ends;
  Numbers axes;  // empty: left out, as are steps
  Numbers steps;
  std::vector<SliceRange> ranges;
  std::string refusal = {};
};

// Of a tensor of 4x10.
const SliceCase kSlices[] = {
    {"the last ones", {7}, {INT64_MAX}, {1}, {1}, {{0, 1, 4}, {7, 1, 3}}},
    {"counted from the end", {-3}, {-1}, {-1}, {1}, {{0, 1, 4}, {7, 1, 2}}},
    {"in steps", {1}, {10}, {1}, {4}, {{0, 1, 4}, {1, 4, 3}}},
    {"both axes", {1, 2}, {3, 100}, {}, {}, {{1, 1, 2}, {2, 1, 8}}},
    {"an end beyond", {-100}, {2}, {0}, {1}, {{0, 1, 2}, {0, 1, 10}}},
    {"one element backwards", {100}, {8}, {1}, {-5}, {{0, 1, 4}, {9, 1, 1}}},
    {"backwards", {9}, {0}, {1}, {-1}, {}, "takes elements backwards"},
    {"nothing", {3}, {3}, {0}, {1}, {}, "has no elements"},
};

TEST(PartRoles, ASliceTakesARangeOfEachDimension) {
  for (const SliceCase& row : kSlices) {
    GraphBuilder builder(all_ops(), 17);
    builder.input("x", float_type({{4, 10}}));
    std::vector<std::string> inputs = {"x"};
    const std::pair<std::string, Numbers> lists[] = {
        {"starts", row.starts}, {"ends", row.ends}, {"axes", row.axes}, {"steps", row.steps}};
    for (const auto& [name, numbers] : lists) {
      if (numbers.empty()) continue;
      const auto count = static_cast<int64_t>(numbers.size());
      builder.constant(name, Tensor::from<int64_t>(DataType::Int64, {count}, numbers));
      inputs.push_back(name);
    }
    builder.node("slice", "Slice", inputs, {"y"}).output("y");
    const Graph graph = inferred(builder, all_ops());
    const FusionRole role = fusion_role(graph, graph.nodes[0]);
    EXPECT_EQ(role.refusal, row.refusal) << row.name;
    EXPECT_EQ(role.kind, row.refusal.empty() ? FusionKind::Slice : FusionKind::None) << row.name;
    if (!row.refusal.empty()) continue;
    ASSERT_EQ(role.slices.size(), 1U) << row.name;
    EXPECT_EQ(role.slices[0], row.ranges) << row.name;
  }
}

TEST(PartRoles, WhatASliceTakesMustBeKnown) {
  GraphBuilder builder(all_ops(), 17);
  const Type list = Type::tensor(DataType::Int64, Shape{1});
  builder.input("x", float_type({{4}})).input("starts", list).input("ends", list);
  builder.declare("y", float_type({{2}}));
  builder.node("slice", "Slice", {"x", "starts", "ends"}, {"y"});
  const Graph graph = builder.output("y").graph();
  EXPECT_EQ(fusion_role(graph, graph.nodes[0]).refusal,
            "its starts, axes or steps are not known before running");
}

TEST(PartRoles, ASplitTakesARangeForEachOutput) {
  GraphBuilder builder(all_ops(), 17);
  builder.input("x", float_type({{2, 10}}));
  builder.constant("sizes", Tensor::from<int64_t>(DataType::Int64, {3}, Numbers{5, 1, 4}));
  builder.node("split", "Split", {"x", "sizes"}, {"a", "b", "c"}, attributes_of({{"axis", -1}}));
  const Graph graph = inferred(builder.output("a").output("b").output("c"), all_ops());
  const FusionRole role = fusion_role(graph, graph.nodes[0]);
  ASSERT_EQ(role.kind, FusionKind::Slice) << role.refusal;
  ASSERT_EQ(role.slices.size(), 3U);
  EXPECT_EQ(role.slices[0][1], (SliceRange{0, 1, 5}));
  EXPECT_EQ(role.slices[1][1], (SliceRange{5, 1, 1}));
  EXPECT_EQ(role.slices[2][1], (SliceRange{6, 1, 4}));
}

TEST(PartRoles, AConcatJoinsAlongOneAxis) {
  GraphBuilder builder(all_ops(), 17);
  builder.input("x", float_type({{2, 3, 4}})).input("w", float_type({{2, 5, 4}}));
  builder.node("concat", "Concat", {"x", "w"}, {"y"}, attributes_of({{"axis", -2}}));
  const Graph graph = inferred(builder.output("y"), all_ops());
  const FusionRole role = fusion_role(graph, graph.nodes[0]);
  ASSERT_EQ(role.kind, FusionKind::Concat) << role.refusal;
  EXPECT_EQ(role.concat_axis, 1U);
  EXPECT_EQ(role.input_dims, (std::vector<Numbers>{{2, 3, 4}, {2, 5, 4}}));
}

}  // namespace
}  // namespace tessera::codegen
