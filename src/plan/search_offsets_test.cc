#include "plan/search_offsets.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

constexpr int64_t kPlenty = 1'000'000;

// At most four units are live at the same time, but five are needed: the long buffers (1 and 3)
// cannot be ordered so that each is above the buffers that are live with only one of them.
std::vector<GridBuffer> pinwheel() {
  return {{0, 2, 3}, {0, 4, 1}, {3, 5, 3}, {2, 6, 1}, {2, 3, 2}, {5, 6, 2}};
}

TEST(OffsetSearch, FindsWhatFitsAndProvesWhatDoesNot) {
  const std::vector<GridBuffer> buffers = pinwheel();
  OffsetSearch search(buffers);
  int64_t height = 1;
  while (search.search(height, kPlenty, 1) == SearchResult::Impossible) ++height;
  EXPECT_EQ(search.search(height, kPlenty, 1), SearchResult::Found);
  EXPECT_EQ(height_of(buffers, search.offsets()), height);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    EXPECT_EQ(search.search(height - 1, kPlenty, seed), SearchResult::Impossible);
    EXPECT_EQ(search.search(height, kPlenty, seed), SearchResult::Found);
  }
}

TEST(OffsetSearch, DoesNotKnowWhatItHadNoTimeFor) {
  OffsetSearch search({{0, 2, 1}, {1, 3, 1}, {2, 4, 1}, {0, 1, 1}, {3, 4, 1}});
  EXPECT_EQ(search.search(2, 0, 1), SearchResult::Unknown);
  EXPECT_EQ(search.search(2, kPlenty, 1), SearchResult::Found);
}

TEST(OffsetSearch, EndsBeforeTheStackDoes) {
  // A chain of 6,000 buffers, each of which overlaps the next one: it needs 6,000 nested decisions.
  std::vector<GridBuffer> buffers;
  for (int index = 0; index < 6000; ++index) buffers.push_back({index, index + 2, 1 + index % 3});
  OffsetSearch search(buffers);
  EXPECT_NE(search.search(5, int64_t{1} << 40, 1), SearchResult::Impossible);
}

TEST(OffsetSearch, StacksWhatIsAlike) {
  const std::vector<GridBuffer> buffers(40, GridBuffer{0, 1, 1});
  OffsetSearch search(buffers);
  EXPECT_EQ(search.search(39, kPlenty, 1), SearchResult::Impossible);
  EXPECT_EQ(search.search(40, kPlenty, 1), SearchResult::Found);
}

}  // namespace
}  // namespace tessera
