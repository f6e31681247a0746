// Parts of a loop that threads of different speed share.
#include "base/shared_parts.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "base/threads/threads_test.h"

namespace tessera::native {
namespace {

// Runs all slots at once; returns how often each part was taken.
std::vector<int> take_all(int64_t count, int64_t slots) {
  std::vector<std::atomic<int>> taken(static_cast<size_t>(count));
  SharedParts parts(count, slots);
  run_at_once(slots, [&](int64_t slot) {
    parts.for_each(slot, [&](int64_t part) { ++taken[static_cast<size_t>(part)]; });
  });
  return {taken.begin(), taken.end()};
}

TEST(SharedParts, EachPartIsTakenOnce) {
  for (const int64_t slots : {1, 2, 3, 7, 40}) {
    for (const int64_t count : {0, 1, 2, 5, 1000}) {
      const std::vector<int> once(static_cast<size_t>(count), 1);
      EXPECT_EQ(take_all(count, slots), once) << count << " parts, " << slots << " slots";
    }
  }
}

TEST(SharedParts, ASlotBeginsWithItsOwnShare) {
  SharedParts parts(10, 2);
  std::vector<int64_t> order;
  parts.for_each(1, [&](int64_t part) { order.push_back(part); });
  EXPECT_EQ(order, (std::vector<int64_t>{5, 6, 7, 8, 9, 0, 1, 2, 3, 4}));
}

TEST(SharedParts, AFastSlotTakesThePartsOfASlowOne) {
  SharedParts parts(10, 2);
  std::vector<int64_t> slow;
  std::vector<int64_t> fast;
  // The slow slot stays in its first part until the fast one has finished.
  parts.for_each(0, [&](int64_t part) {
    if (slow.empty()) parts.for_each(1, [&](int64_t other) { fast.push_back(other); });
    slow.push_back(part);
  });
  EXPECT_EQ(slow, (std::vector<int64_t>{0}));
  EXPECT_EQ(fast.size(), 9U);
}

}  // namespace
}  // namespace tessera::native
