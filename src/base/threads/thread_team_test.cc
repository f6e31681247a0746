#include "base/threads/thread_team.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace tessera {
namespace {

class ThreadTeamTest : public testing::TestWithParam<int> {};

TEST_P(ThreadTeamTest, CoversEachIndexOnce) {
  ThreadTeam team(GetParam(), Denormals::Keep);
  for (const int64_t count : {2, 3, 64, 1000}) {
    for (const int64_t grain : {1, 7}) {
      if (count <= grain) continue;
      std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
      team.parallel_for(count, grain, [&](int64_t begin, int64_t end) {
        for (int64_t index = begin; index < end; ++index) ++seen[static_cast<size_t>(index)];
      });
      for (const std::atomic<int>& times : seen) ASSERT_EQ(times, 1);
    }
  }
}

TEST_P(ThreadTeamTest, RunsALoopWithinALoop) {
  ThreadTeam team(GetParam(), Denormals::Keep);
  std::atomic<int64_t> sum = 0;
  team.parallel_for(10, 1, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      team.parallel_for(10, 1, [&](int64_t first, int64_t last) { sum += last - first; });
    }
  });
  EXPECT_EQ(sum, 100);
}

TEST_P(ThreadTeamTest, RethrowsAFailureAndGoesOn) {
  ThreadTeam team(GetParam(), Denormals::Keep);
  const auto fail = [](int64_t, int64_t) { throw std::runtime_error("it failed"); };
  EXPECT_THROW(team.parallel_for(100, 1, fail), std::runtime_error);
  std::atomic<int64_t> sum = 0;
  team.parallel_for(100, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
  EXPECT_EQ(sum, 100);
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadTeamTest, testing::Values(1, 2, 3, 8));

TEST(ThreadTeamTest, RunsLoopsOfSeveralCallers) {
  ThreadTeam team(3, Denormals::Keep);
  std::atomic<int64_t> sum = 0;
  const auto call = [&] {
    for (int turn = 0; turn < 200; ++turn) {
      team.parallel_for(16, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    }
  };
  std::thread other(call);
  call();
  other.join();
  EXPECT_EQ(sum, 2 * 200 * 16);
}

}  // namespace
}  // namespace tessera
