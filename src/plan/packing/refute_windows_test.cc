#include "plan/packing/refute_windows.h"

#include <gtest/gtest.h>

#include "plan/packing/knot_test.h"

namespace tessera {
namespace {

bool is_refuted(const std::vector<GridBuffer>& buffers, int64_t height) {
  WindowRefuter windows(buffers);
  for (int turn = 0; turn < 1000; ++turn) {
    if (windows.take_turn(height, {.effort = 1'000'000})) return true;
    EXPECT_GE(windows.effort_spent(), 1);
  }
  return false;
}

TEST(WindowRefuter, FindsTheSectionsThatNeedMore) {
  // The knot begins in section 10; long buffers with different ends are live during it.
  std::vector<GridBuffer> buffers;
  for (const GridBuffer& buffer : knot()) {
    buffers.push_back({buffer.first + 10, buffer.end + 10, buffer.units});
  }
  for (int index = 0; index < 8; ++index) buffers.push_back({index, 30 - index, 2});
  EXPECT_TRUE(is_refuted(buffers, 21));
  EXPECT_FALSE(is_refuted(buffers, 22));
}

TEST(WindowRefuter, FindsTooHighALoad) {
  EXPECT_TRUE(is_refuted({{0, 2, 3}, {1, 3, 3}}, 5));
  EXPECT_FALSE(is_refuted({{0, 2, 3}, {1, 3, 3}}, 6));
}

}  // namespace
}  // namespace tessera
