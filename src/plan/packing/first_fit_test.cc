#include "plan/packing/first_fit.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(PackFirstFit, TakesTheBestOfItsOrders) {
  // Ordered by size, the two long buffers are placed above the large one, with a hole below: 5
  // units.
  const std::vector<GridBuffer> buffers = {{0, 1, 3}, {1, 3, 2}, {0, 3, 1}, {2, 4, 1}};
  const std::vector<int64_t> offsets = pack_first_fit(buffers, 0);
  ASSERT_EQ(offsets.size(), buffers.size());
  EXPECT_EQ(height_of(buffers, offsets), 4);
}

TEST(PackFirstFit, FillsGaps) {
  EXPECT_EQ(pack_first_fit(std::vector<GridBuffer>{{0, 1, 3}, {0, 2, 2}, {1, 2, 3}}, 0),
            (std::vector<int64_t>{0, 3, 0}));
}

}  // namespace
}  // namespace tessera
