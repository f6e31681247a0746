#include "plan/packing/packing_grid.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(MergeBuffers, MergesWhatLiesTogether) {
  const struct {
    const char* name;
    std::vector<GridBuffer> buffers;
    std::vector<GridBuffer> merged;
  } cases[] = {
      {"nothing", {}, {}},
      {"nothing alike", {{0, 2, 3}, {1, 3, 4}}, {{0, 2, 3}, {1, 3, 4}}},
      {"equal lifetimes", {{0, 2, 3}, {0, 2, 4}, {0, 2, 5}}, {{0, 2, 12}}},
      {"one after the other", {{0, 2, 3}, {2, 5, 3}, {5, 6, 3}}, {{0, 6, 3}}},
      {"the last comes first", {{5, 6, 3}, {2, 5, 3}, {0, 2, 3}}, {{0, 6, 3}}},
      {"one of two", {{0, 2, 3}, {1, 2, 3}, {2, 5, 3}}, {{0, 5, 3}, {1, 2, 3}}},
      {"as high as two", {{0, 2, 3}, {2, 5, 1}, {2, 5, 2}, {2, 5, 9}}, {{0, 5, 3}, {2, 5, 9}}},
      {"two as high as two", {{0, 2, 3}, {0, 2, 4}, {2, 5, 1}, {2, 5, 6}}, {{0, 5, 7}}},
      {"again with what came of it", {{0, 2, 3}, {2, 4, 1}, {2, 4, 2}, {0, 4, 5}}, {{0, 4, 8}}},
  };
  for (const auto& [name, buffers, expected] : cases) {
    const MergedBuffers merged = merge_buffers(buffers);
    ASSERT_EQ(merged.buffers.size(), expected.size()) << name;
    for (size_t index = 0; index < expected.size(); ++index) {
      EXPECT_EQ(merged.buffers[index].first, expected[index].first) << name;
      EXPECT_EQ(merged.buffers[index].end, expected[index].end) << name;
      EXPECT_EQ(merged.buffers[index].units, expected[index].units) << name;
    }
  }
}

TEST(MergeBuffers, KnowsWhereThePartsLie) {
  const std::vector<GridBuffer> buffers = {{0, 2, 3}, {2, 4, 1}, {2, 4, 2}, {0, 4, 5}};
  const MergedBuffers merged = merge_buffers(buffers);
  const std::vector<int64_t> offsets = {7};
  EXPECT_EQ(offsets_of_parts(merged, offsets, 4), (std::vector<int64_t>{7, 7, 8, 10}));
}

TEST(MergeBuffers, MergesOnlyWhatTheOptionsAllow) {
  // Ten pairs that fit together, and two buffers of equal lifetime.
  std::vector<GridBuffer> buffers = {{0, 50, 1}, {0, 50, 2}};
  for (int index = 0; index < 10; ++index) {
    buffers.push_back({index, index + 20, 100 + index});
    buffers.push_back({index + 20, index + 40, 100 + index});
  }
  EXPECT_EQ(merge_buffers(buffers).buffers.size(), 11);
  EXPECT_EQ(merge_buffers(buffers, {.max_joined = 1}).buffers.size(), 21);
  EXPECT_EQ(merge_buffers(buffers, {.stacks_equal_lifetimes = false}).buffers.size(), 12);
  const MergeOptions half{.share = 0.5, .seed = 1};
  const size_t count = merge_buffers(buffers, half).buffers.size();
  EXPECT_GT(count, 11);
  EXPECT_LT(count, 21);
  EXPECT_EQ(merge_buffers(buffers, half).buffers.size(), count);
  EXPECT_GT(merge_buffers(buffers).stacks_visited, 20);
}

}  // namespace
}  // namespace tessera
