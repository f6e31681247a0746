#include "plan/packing/packing_grid.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(PackingGrid, FixesWhatIsLiveAsLongAsAllOthers) {
  const std::vector<BufferRequest> requests = {
      {0, 9, 20},                          // longest
      {0, 5, 30},                          // longest of those that overlap it
      {0, 2, 40}, {1, 4, 50}, {3, 5, 60},  // none is live as long as all three
      {5, 9, 70},                          // alone
  };
  const PackingGrid grid = make_grid(requests, 1);
  EXPECT_EQ(grid.unit_bytes, 10);
  ASSERT_EQ(grid.fixed.size(), 3);
  std::vector<int64_t> offsets(requests.size(), -1);
  for (const FixedRequest& fixed : grid.fixed) offsets[fixed.request] = fixed.offset;
  EXPECT_EQ(offsets, (std::vector<int64_t>{0, 2, -1, -1, -1, 2}));
  EXPECT_EQ(grid.fixed_height, 9);
  ASSERT_EQ(grid.parts.size(), 1);
  EXPECT_EQ(grid.parts[0].requests, (std::vector<size_t>{2, 3, 4}));
  EXPECT_EQ(grid.parts[0].units_below, 5);
  EXPECT_EQ(grid.parts[0].load, 11);
}

TEST(PackingGrid, TakesManyNestedRequests) {
  std::vector<BufferRequest> requests;
  for (int64_t index = 0; index < 100'000; ++index) requests.push_back({index, 300'000 - index, 1});
  const PackingGrid grid = make_grid(requests, 1);
  size_t total = grid.fixed.size();
  for (const GridPart& part : grid.parts) total += part.requests.size();
  EXPECT_EQ(total, requests.size());
}

}  // namespace
}  // namespace tessera
