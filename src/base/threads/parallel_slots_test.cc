#include "base/threads/parallel_slots.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace tessera {
namespace {

TEST(ParallelSlots, VisitEveryIndexOnceAndShareNoSlot) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (const int64_t count : {0, 1, 7, 1000}) {
      for (const int64_t grain : {1, 3, 2000}) {
        const int64_t slots = slot_count(pool, count, grain);
        EXPECT_LE(slots, threads);
        std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
        std::vector<std::atomic<int>> users(static_cast<size_t>(slots));
        parallel_for_in_slots(pool, count, grain, [&](int64_t slot, int64_t begin, int64_t end) {
          EXPECT_EQ(users[static_cast<size_t>(slot)]++, 0);
          for (int64_t index = begin; index < end; ++index) ++visits[static_cast<size_t>(index)];
          --users[static_cast<size_t>(slot)];
        });
        for (const auto& visit : visits) ASSERT_EQ(visit, 1) << count << " by " << grain;
      }
    }
  }
}

TEST(ParallelSlots, AreNoMoreThanThePieces) {
  ThreadPool pool(4);
  EXPECT_EQ(slot_count(pool, 0, 5), 0);
  EXPECT_EQ(slot_count(pool, 5, 5), 1);
  EXPECT_EQ(slot_count(pool, 6, 5), 2);
  EXPECT_EQ(slot_count(pool, 1000, 5), 4);
}

}  // namespace
}  // namespace tessera
