#include "base/threads/parallel.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "base/errors/error_test.h"

namespace tessera {
namespace {

class ParallelFor : public testing::TestWithParam<int> {
 protected:
  ThreadPool pool_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Threads, ParallelFor, testing::Values(1, 2, 3, 4));

TEST_P(ParallelFor, VisitsEveryIndexOnce) {
  EXPECT_EQ(pool_.threads(), GetParam());
  for (const int64_t count : {0, 1, 2, 7, 64, 1000, 10007}) {
    for (const int64_t grain : {-1, 0, 1, 3, 64, 20000}) {
      std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
      pool_.parallel_for(count, grain, [&](int64_t begin, int64_t end) {
        for (int64_t index = begin; index < end; ++index) ++visits[static_cast<size_t>(index)];
      });
      for (const auto& visit : visits) ASSERT_EQ(visit, 1) << count << " by " << grain;
    }
  }
}

TEST_P(ParallelFor, ANegativeCountRunsNothing) {
  pool_.parallel_for(-5, 1, [](int64_t, int64_t) { FAIL() << "no index to visit"; });
}

TEST_P(ParallelFor, PiecesAreNotMuchSmallerThanTheGrain) {
  std::atomic<int> pieces = 0;
  pool_.parallel_for(10000, 100, [&](int64_t, int64_t) { ++pieces; });
  EXPECT_LE(pieces, 200);
}

TEST_P(ParallelFor, LoopsMayBeNested) {
  std::vector<std::atomic<int>> visits(size_t{40} * 50);
  pool_.parallel_for(40, 1, [&](int64_t row_begin, int64_t row_end) {
    for (int64_t row = row_begin; row < row_end; ++row) {
      pool_.parallel_for(50, 1, [&](int64_t begin, int64_t end) {
        for (int64_t column = begin; column < end; ++column) {
          ++visits[static_cast<size_t>(row * 50 + column)];
        }
      });
    }
  });
  for (const auto& visit : visits) ASSERT_EQ(visit, 1);
}

TEST_P(ParallelFor, UsesNoMoreThreadsThanItHas) {
  std::mutex mutex;
  std::set<std::thread::id> seen;
  pool_.parallel_for(200, 1, [&](int64_t, int64_t) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    const std::scoped_lock lock(mutex);
    seen.insert(std::this_thread::get_id());
  });
  EXPECT_LE(seen.size(), static_cast<size_t>(GetParam()));
}

TEST_P(ParallelFor, ThrowsWhatABodyThrowsAndGoesOnWorking) {
  const auto run = [&](int64_t bad) {
    pool_.parallel_for(1000, 1, [bad](int64_t begin, int64_t end) {
      if (begin <= bad && bad < end) throw Error(ErrorKind::InvalidArgument, "body", "stop");
    });
  };
  for (const int64_t bad : {0, 500, 999}) EXPECT_THROW(run(bad), Error);
  EXPECT_NO_THROW(run(-1));
}

TEST(ThreadPool, ZeroMeansAllCoresAndLessIsRefused) {
  EXPECT_GE(ThreadPool(0).threads(), 1);
  EXPECT_EQ(error_of([&] { ThreadPool pool(-1); }),
            "InvalidArgument: option 'threads': expected 0 (all cores) to 4096, found -1");
}

}  // namespace
}  // namespace tessera
