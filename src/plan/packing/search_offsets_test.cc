#include "plan/packing/search_offsets.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/packing/knot_test.h"

namespace tessera {
namespace {

constexpr int64_t kPlenty = 1'000'000;

// All combinations of heuristics.
std::vector<SearchHeuristics> all_heuristics() {
  std::vector<SearchHeuristics> all;
  for (const bool failed : {false, true}) {
    for (const bool flush : {false, true}) {
      for (const bool area : {false, true}) {
        all.push_back({.prefers_failed_sections = failed,
                       .prefers_flush_buffers = flush,
                       .prefers_area = area});
      }
    }
  }
  return all;
}

TEST(OffsetSearch, FindsWhatFitsAndProvesWhatDoesNot) {
  const std::vector<GridBuffer> buffers = knot();
  OffsetSearch search(buffers);
  int64_t height = 1;
  while (search.search(height, {.effort = kPlenty}, 1) == SearchResult::Impossible) ++height;
  EXPECT_EQ(search.search(height, {.effort = kPlenty}, 1), SearchResult::Found);
  EXPECT_EQ(height_of(buffers, search.offsets()), height);
  EXPECT_EQ(height, 6);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    EXPECT_EQ(search.search(height - 1, {.effort = kPlenty}, seed), SearchResult::Impossible);
    EXPECT_EQ(search.search(height, {.effort = kPlenty}, seed), SearchResult::Found);
  }
}

TEST(OffsetSearch, GivesTheSameAnswerWithAllHeuristics) {
  for (const SearchHeuristics& heuristics : all_heuristics()) {
    OffsetSearch search(knot());
    EXPECT_EQ(search.search(5, {.effort = kPlenty}, 1, heuristics), SearchResult::Impossible);
    EXPECT_EQ(search.search(6, {.effort = kPlenty}, 1, heuristics), SearchResult::Found);
  }
}

TEST(OffsetSearch, EndsWhenItIsOver) {
  // So many alternatives that a proof would take years.
  std::vector<GridBuffer> buffers;
  for (int index = 0; index < 200; ++index) {
    buffers.push_back({index % 17, index % 17 + 3 + index % 5, 1000 + 7 * index});
  }
  int64_t load = 0;
  for (int section = 0; section < 17; ++section) {
    int64_t live = 0;
    for (const GridBuffer& buffer : buffers) {
      if (buffer.first <= section && section < buffer.end) live += buffer.units;
    }
    load = std::max(load, live);
  }
  OffsetSearch search(buffers);
  int questions = 0;
  const auto is_over = [&] { return ++questions == 3; };
  const SearchLimits limits{.effort = int64_t{1} << 60, .is_over = is_over};
  EXPECT_EQ(search.search(load + 1, limits, 1), SearchResult::Unknown);
  EXPECT_EQ(questions, 3);
  EXPECT_LT(search.effort_spent(), 10'000'000);
}

TEST(OffsetSearch, DoesNotKnowWhatItHadNoTimeFor) {
  OffsetSearch search({{0, 2, 1}, {1, 3, 1}, {2, 4, 1}, {0, 1, 1}, {3, 4, 1}});
  EXPECT_EQ(search.search(2, {.effort = 0}, 1), SearchResult::Unknown);
  EXPECT_EQ(search.search(2, {.effort = kPlenty}, 1), SearchResult::Found);
}

TEST(OffsetSearch, EndsBeforeTheStackDoes) {
  // A chain of 6,000 buffers, each of which overlaps the next one: it needs 6,000 nested decisions.
  std::vector<GridBuffer> buffers;
  for (int index = 0; index < 6000; ++index) buffers.push_back({index, index + 2, 1 + index % 3});
  OffsetSearch search(buffers);
  EXPECT_NE(search.search(5, {.effort = int64_t{1} << 40}, 1), SearchResult::Impossible);
}

TEST(OffsetSearch, StacksWhatIsAlike) {
  const std::vector<GridBuffer> buffers(40, GridBuffer{0, 1, 1});
  OffsetSearch search(buffers);
  EXPECT_EQ(search.search(39, {.effort = kPlenty}, 1), SearchResult::Impossible);
  EXPECT_EQ(search.search(40, {.effort = kPlenty}, 1), SearchResult::Found);
}

}  // namespace
}  // namespace tessera
