#include "microbench/gather_threads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace tessera::tuning {
namespace {

using Clock = std::chrono::steady_clock;

TEST(GatherThreads, ReturnsSoonWithAnyNumberOfThreads) {
  // More threads than cores, too: those that do not run are not waited for.
  for (const int threads : {1, 2, 3, 64}) {
    ThreadPool pool(threads);
    std::vector<double> seconds;
    for (int run = 0; run < 20; ++run) {
      pool.execute([&] {
        const Clock::time_point start = Clock::now();
        gather_threads(pool);
        seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
      });
    }
    EXPECT_LT(*std::ranges::min_element(seconds), 0.02) << threads << " threads";
  }
}

}  // namespace
}  // namespace tessera::tuning
