#include "happens_before.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace tessera::fake {
namespace {

Access access(int64_t begin, int64_t end, bool is_write, Epoch epoch = {}) {
  return {begin, end, is_write, epoch, std::make_shared<const std::string>("operation")};
}

TEST(VectorClock, includes_what_it_joined) {
  VectorClock first;
  VectorClock second;
  const Epoch epoch = first.advance(3);
  EXPECT_TRUE(first.includes(epoch));
  EXPECT_FALSE(second.includes(epoch));
  second.join(first);
  EXPECT_TRUE(second.includes(epoch));
  EXPECT_FALSE(second.includes(first.advance(3)));
}

TEST(AccessHistory, keeps_a_bounded_number_of_accesses) {
  AccessHistory history;
  VectorClock clock;
  const auto count = static_cast<int64_t>(AccessHistory::kMaxAccesses) + 10;
  for (int64_t index = 0; index < count; ++index) {
    const Epoch epoch = clock.advance(1);
    EXPECT_FALSE(history.add(access(index, index + 1, true, epoch), clock, {}));
  }
  EXPECT_EQ(history.take_forgotten(), 10);
  EXPECT_EQ(history.take_forgotten(), 0);
  // The first ten accesses are forgotten, the others are not.
  EXPECT_FALSE(history.add(access(0, 10, false, {2, 1}), {}, {}));
  EXPECT_TRUE(history.add(access(11, 12, false, {2, 2}), {}, {}));
}

// Compares the history, which replaces accesses by later ones, with one that keeps everything.
TEST(RaceDetector, finds_the_same_as_comparing_all_pairs) {
  int64_t races = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int64_t bound) { return static_cast<int64_t>(random()) % bound; };
    RaceDetector detector;
    std::vector<QueueClock> queues;
    for (int index = 0; index < 3; ++index) queues.push_back(detector.open_queue());
    std::vector<VectorClock> events(3);
    AccessHistory history;
    std::vector<Access> all;
    for (int step = 0; step < 60; ++step) {
      QueueClock& queue = queues[static_cast<size_t>(below(3))];
      const Epoch epoch = detector.enqueue(queue);
      switch (below(8)) {
        case 0:
          events[static_cast<size_t>(below(3))] = queue.clock;
          break;
        case 1:
          queue.clock.join(events[static_cast<size_t>(below(3))]);
          break;
        case 2:
          if (below(4) == 0) detector.host().join(queue.clock);
          break;
        default: {
          const int64_t begin = below(6);
          const Access made = access(begin, begin + 1 + below(3), below(2) == 0, epoch);
          bool is_racing = false;
          for (const Access& earlier : all) {
            const bool overlaps = earlier.begin < made.end && made.begin < earlier.end;
            is_racing |= overlaps && (made.is_write || earlier.is_write) &&
                         !queue.clock.includes(earlier.epoch);
          }
          all.push_back(made);
          races += is_racing ? 1 : 0;
          ASSERT_EQ(detector.access(history, "m", made, queue.clock).has_value(), is_racing)
              << "seed " << seed << ", step " << step;
        }
      }
    }
  }
  EXPECT_GT(races, 100);
}

TEST(RaceDetector, a_new_queue_is_not_confused_with_a_closed_one) {
  RaceDetector detector;
  AccessHistory history;
  QueueClock closed = detector.open_queue();
  const Epoch epoch = detector.enqueue(closed);
  EXPECT_FALSE(detector.access(history, "m", access(0, 4, true, epoch), closed.clock));
  detector.close_queue(closed);
  QueueClock next = detector.open_queue();
  EXPECT_EQ(next.component, closed.component);
  EXPECT_FALSE(
      detector.access(history, "m", access(0, 4, true, detector.enqueue(next)), next.clock));
  QueueClock other = detector.open_queue();
  EXPECT_TRUE(
      detector.access(history, "m", access(0, 4, true, detector.enqueue(other)), other.clock));
}

}  // namespace
}  // namespace tessera::fake
