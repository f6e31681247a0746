#include "microbench/fastest_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace tessera::tuning {
namespace {

// Gives the outcomes in order, the last one again and again.
class Script {
 public:
  explicit Script(std::vector<Outcome> outcomes) : outcomes_(std::move(outcomes)) {}
  Outcome next() {
    const Outcome outcome = outcomes_[std::min(count_, outcomes_.size() - 1)];
    ++count_;
    return outcome;
  }
  Outcome fastest(int runs) {
    return fastest_of(runs, [this] { return next(); });
  }
  size_t count() const { return count_; }

 private:
  std::vector<Outcome> outcomes_;
  size_t count_ = 0;
};

TEST(FastestRun, IsTheFastestOfSoMany) {
  Script script({{.seconds = 3e-6}, {.seconds = 1e-6}, {.seconds = 2e-6}});
  EXPECT_EQ(script.fastest(3).seconds, 1e-6);
  EXPECT_EQ(script.count(), 3U);
}

TEST(FastestRun, TheFirstFailureEndsIt) {
  Script script({{.seconds = 3e-6}, {.reason = "it fails"}, {.seconds = 2e-6}});
  EXPECT_EQ(script.fastest(3).reason, "it fails");
  EXPECT_EQ(script.count(), 2U);
}

TEST(FastestRun, IsRepeatedIfItWasPreempted) {
  Script script({{.seconds = 9e-6, .was_preempted = true}, {.seconds = 3e-6}});
  EXPECT_EQ(script.fastest(1).seconds, 3e-6);
  EXPECT_EQ(script.count(), 2U);
}

TEST(FastestRun, IsNotRepeatedForLong) {
  Script often({{.seconds = 9e-6, .was_preempted = true}});
  EXPECT_TRUE(often.fastest(1).was_preempted);
  EXPECT_EQ(often.count(), 9U);
  Script slow({{.seconds = 1, .was_preempted = true}});
  EXPECT_TRUE(slow.fastest(1).was_preempted);
  EXPECT_EQ(slow.count(), 1U);
}

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
