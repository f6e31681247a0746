#include "codegen/groups/group_space.h"

#include <gtest/gtest.h>

namespace tessera::codegen {
namespace {

using Dims = std::vector<int64_t>;

struct Refinement {
  const char* name;
  Dims first;
  Dims second;
  Dims axes;  // empty: they do not fit
};

TEST(IterationSpace, AxesDivideTheDimensionsOfAllShapes) {
  const Refinement rows[] = {
      {"the same shape keeps its ones", {1, 6, 4}, {1, 6, 4}, {1, 6, 4}},
      {"one dimension split", {6, 4}, {2, 3, 4}, {2, 3, 4}},
      {"two merged", {2, 3, 4}, {6, 4}, {2, 3, 4}},
      {"ones come and go", {1, 6, 1}, {6, 1, 1, 1}, {6}},
      {"across", {4, 6}, {2, 12}, {2, 2, 6}},
      {"no common axes", {2, 3}, {3, 2}, {}},
      {"other products", {2, 3}, {2, 4}, {}},
  };
  for (const Refinement& row : rows) {
    IterationSpace space(row.first);
    EXPECT_EQ(space.add_shape(row.second), !row.axes.empty()) << row.name;
    EXPECT_EQ(space.axes(), row.axes.empty() ? row.first : row.axes) << row.name;
  }
}

TEST(IterationSpace, RefiningKeepsWhatIsReduced) {
  IterationSpace space({2, 12, 5});
  ASSERT_TRUE(space.reduce(Dims{2, 12, 5}, {false, true, false}));
  ASSERT_TRUE(space.add_shape(Dims{2, 3, 4, 5}));
  EXPECT_EQ(space.reduced(), (std::vector<bool>{false, true, true, false}));
  EXPECT_EQ(space.row_points(), 12);
  EXPECT_TRUE(space.reduce(Dims{2, 12, 5}, {false, true, false}));
  EXPECT_FALSE(space.reduce(Dims{2, 12, 5}, {false, false, true}));
  EXPECT_FALSE(space.reduce(Dims{2, 3, 4, 5}, {false, true, false, false}));
}

struct Mapping {
  const char* name;
  Dims dims;
  Level level;
  bool fits;
};

TEST(IterationSpace, TensorsOfRowsHaveTheKeptAxes) {
  IterationSpace space({2, 12, 5});
  ASSERT_TRUE(space.reduce(Dims{2, 12, 5}, {false, true, false}));
  const Mapping rows[] = {
      {"whole", {2, 12, 5}, Level::Point, true},
      {"merged", {24, 5}, Level::Point, true},
      {"too small", {12, 5}, Level::Point, false},
      {"kept dimensions", {2, 1, 5}, Level::Row, true},
      {"without them", {2, 5}, Level::Row, true},
      {"merged over what is reduced", {10}, Level::Row, false},
      {"whole as a row", {2, 12, 5}, Level::Row, false},
  };
  for (const Mapping& row : rows) {
    EXPECT_EQ(space.runs(row.dims, row.level).has_value(), row.fits) << row.name;
  }
}

TEST(IterationSpace, RowsBroadcastAlongWhatIsReduced) {
  IterationSpace space({2, 12, 5});
  ASSERT_TRUE(space.reduce(Dims{2, 12, 5}, {false, true, false}));
  const Dims whole = {2, 12, 5};
  EXPECT_TRUE(space.broadcasts(Dims{2, 1, 5}, Level::Row, whole));
  EXPECT_FALSE(space.broadcasts(Dims{1, 2, 5}, Level::Row, whole));
  EXPECT_FALSE(space.broadcasts(Dims{2, 12, 1}, Level::Row, whole));
  EXPECT_TRUE(space.broadcasts(whole, Level::Point, whole));
  EXPECT_FALSE(space.broadcasts(Dims{1, 12, 5}, Level::Point, whole));
}

TEST(IterationSpace, SpacesOfTheSamePointsMerge) {
  IterationSpace space({6, 4});
  IterationSpace other({2, 3, 4});
  ASSERT_TRUE(other.reduce(Dims{2, 3, 4}, {false, false, true}));
  ASSERT_TRUE(space.add_space(other));
  EXPECT_EQ(space.axes(), (Dims{2, 3, 4}));
  EXPECT_TRUE(space.has_reduction());
  EXPECT_FALSE(space.has_one_shape());
  EXPECT_FALSE(IterationSpace({6, 4}).add_space(IterationSpace({6})));
}

}  // namespace
}  // namespace tessera::codegen
