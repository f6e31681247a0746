#include "codegen/groups/group_space.h"

#include "base/tensor/tensors_test.h"
#include "infer/infer.h"
#include "ops/graph_test.h"

namespace tessera::codegen {
namespace {

using Dims = std::vector<int64_t>;

struct Common {
  const char* name;
  Partition left;
  Partition right;
  std::optional<Partition> common;
};

TEST(Partition, TheCommonOneIsTheCoarsest) {
  const Common rows[] = {
      {"both whole", {24, 0}, {24, 0}, Partition{24, 0}},
      {"other tensors", {24, 0}, {12, 0}, std::nullopt},
      {"one cut", {24, 0}, {12, 4}, Partition{12, 4}},
      {"into no whole number of parts", {24, 0}, {9, 3}, std::nullopt},
      {"parts of parts", {32, 8}, {16, 4}, Partition{16, 4}},
      {"units without a common multiple", {24, 6}, {16, 4}, Partition{8, 2}},
      {"chunks and neighbours", {12, 4}, {12, 1}, std::nullopt},
  };
  for (const Common& row : rows) {
    for (const bool is_swapped : {false, true}) {
      const std::optional<Partition> found = is_swapped ? common_partition(row.right, row.left)
                                                        : common_partition(row.left, row.right);
      ASSERT_EQ(found.has_value(), row.common.has_value()) << row.name;
      if (!found) continue;
      EXPECT_EQ(found->points, row.common->points) << row.name;
      EXPECT_EQ(found->part_elements, row.common->part_elements) << row.name;
    }
  }
}

struct Cut {
  const char* name;
  Dims dims;
  Partition target;
  Dims axes;  // of a part; empty: it cannot be cut so
};

TEST(GroupSpace, IsCutIntoChunksOrNeighbours) {
  const Cut rows[] = {
      {"halves of rows", {3, 8}, {12, 4}, {3, 4}},
      {"neighbours", {3, 8}, {12, 1}, {3, 4}},
      {"halves of columns", {4, 8}, {16, 16}, {2, 8}},
      {"nothing", {3, 8}, {24, 0}, {3, 8}},
      {"across rows", {3, 8}, {8, 8}, {8}},
      {"chunks that end inside of rows", {3, 8}, {4, 2}, {}},
      {"no divisor", {3, 8}, {7, 7}, {}},
  };
  for (const Cut& row : rows) {
    GroupSpace group = {IterationSpace(row.dims), 0, {}};
    ASSERT_EQ(group.cut(row.target), !row.axes.empty()) << row.name;
    if (row.axes.empty()) continue;
    Dims axes;
    for (const int64_t axis : group.space.axes()) {
      if (axis != 1) axes.push_back(axis);
    }
    EXPECT_EQ(group.space.points(), row.target.points) << row.name;
    EXPECT_EQ(axes, row.axes) << row.name;
  }
}

TEST(GroupSpace, WhatIsCutReducesNothing) {
  GroupSpace group = {IterationSpace({3, 8}), 0, {}};
  ASSERT_TRUE(group.space.reduce(Dims{3, 8}, {false, true}));
  EXPECT_FALSE(group.cut({12, 4}));
}

TEST(GroupSpace, ValuesConsistOfParts) {
  GroupSpace group = {IterationSpace({3, 8}), 0, {}};
  ASSERT_TRUE(group.cut({12, 4}));
  EXPECT_EQ(group.parts(Dims{3, 4}, Level::Point), 1);
  EXPECT_EQ(group.parts(Dims{3, 8}, Level::Point), 2);
  EXPECT_EQ(group.parts(Dims{3, 12}, Level::Point), 3);
  EXPECT_EQ(group.parts(Dims{3, 6}, Level::Point), 0);
  EXPECT_EQ(group.parts(Dims{3, 128}, Level::Point), 0) << "too many for a kernel";
  EXPECT_TRUE(group.add_shape(Dims{3, 2, 4}));
  EXPECT_FALSE(group.add_shape(Dims{2, 3, 4})) << "parts are not the first axis";
}

struct Taken {
  const char* name;
  int64_t start;
  int64_t end;
  int64_t step;
  std::optional<Dims> parts;
};

// A Slice of the last axis takes these parts of a value of 3x8, if the group is cut as it demands.
TEST(GroupSpace, ASliceTakesParts) {
  const Taken rows[] = {
      {"the first half", 0, 4, 1, Dims{0}},
      {"the second half", 4, 8, 1, Dims{1}},
      {"the middle", 2, 6, 1, Dims{1, 2}},
      {"even ones", 0, 8, 2, Dims{0}},
      {"odd ones", 1, 8, 2, Dims{1}},
      {"every third one", 0, 8, 3, std::nullopt},
      {"all", 0, 8, 1, Dims{0}},
      {"odd ones but the first", 3, 8, 2, std::nullopt},
  };
  for (const Taken& row : rows) {
    GraphBuilder builder(all_ops(), 17);
    builder.input("x", float_type({{3, 8}})).node("a", "Relu", {"x"}, {"r"});
    const auto list = [&](const std::string& name, int64_t number) {
      builder.constant(name, ints({1}, {number}));
    };
    list("start", row.start);
    list("end", row.end);
    list("axis", 1);
    list("step", row.step);
    builder.node("s", "Slice", {"r", "start", "end", "axis", "step"}, {"z"}).output("z");
    const Graph made = infer_types(builder.graph(), all_ops(), Log());
    const FusionGraph graph(made);
    const Partition whole = {24, 0};
    const std::optional<Partition> demanded = demanded_partition(graph, {1}, true);
    std::optional<GroupSpace> group = first_space(graph, {0}, demanded.value_or(whole));
    const bool fits = group && add_node(graph, {0}, *group) && add_node(graph, {1}, *group);
    ASSERT_EQ(fits, row.parts.has_value()) << row.name;
    if (!fits) continue;
    EXPECT_EQ(parts_taken(graph, {1}, 0, *group), row.parts) << row.name;
  }
}

}  // namespace
}  // namespace tessera::codegen
