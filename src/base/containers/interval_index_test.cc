#include "base/containers/interval_index.h"

#include <random>
#include <set>

#include "base/matchers_test.h"

namespace tessera {
namespace {

using Intervals = std::vector<std::pair<int64_t, int64_t>>;

std::vector<size_t> found(const IntervalIndex& index, int64_t begin, int64_t end) {
  std::vector<size_t> ids;
  index.find(begin, end, ids);
  return ids;
}

TEST(IntervalIndex, FindsWhatIsPresentAndOverlaps) {
  IntervalIndex index(Intervals{{10, 20}, {0, 5}, {4, 12}});
  EXPECT_THAT(found(index, 0, 100), IsEmpty());
  for (size_t id = 0; id < 3; ++id) index.insert(id);
  EXPECT_THAT(found(index, 0, 100), ElementsAre(1, 2, 0));
  EXPECT_THAT(found(index, 5, 10), ElementsAre(2));
  EXPECT_THAT(found(index, 20, 30), IsEmpty());
  index.erase(2);
  EXPECT_THAT(found(index, 4, 11), ElementsAre(1, 0));
}

TEST(IntervalIndex, OfNothingFindsNothing) {
  EXPECT_THAT(found(IntervalIndex({}), 0, 9), IsEmpty());
}

TEST(IntervalIndex, AgreesWithLookingAtAll) {
  std::mt19937 random(7);
  Intervals intervals;
  for (int index = 0; index < 100; ++index) {
    const int64_t begin = random() % 200;
    intervals.emplace_back(begin, begin + 1 + static_cast<int64_t>(random() % 30));
  }
  IntervalIndex index(intervals);
  std::set<size_t> present;
  for (int round = 0; round < 1000; ++round) {
    const size_t id = random() % intervals.size();
    present.insert(id).second ? index.insert(id) : (present.erase(id), index.erase(id));
    const int64_t begin = random() % 200;
    const int64_t end = begin + 1 + static_cast<int64_t>(random() % 20);
    std::set<size_t> expected;
    for (const size_t one : present) {
      if (intervals[one].first < end && begin < intervals[one].second) expected.insert(one);
    }
    const std::vector<size_t> ids = found(index, begin, end);
    ASSERT_EQ(std::set<size_t>(ids.begin(), ids.end()), expected);
    ASSERT_EQ(ids.size(), expected.size());
  }
}

}  // namespace
}  // namespace tessera
