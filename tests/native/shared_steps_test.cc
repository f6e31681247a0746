// Steps that threads share, with any subset of the threads running.
#include "base/shared_steps.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "base/threads/threads_test.h"

namespace tessera::native {
namespace {

using Calls = std::vector<std::pair<int64_t, int64_t>>;  // steps and shares

constexpr int64_t kSteps = 500;

// Every thread adds what all shares had in the step before: a lost or an early call changes it.
TEST(SharedSteps, AStepSeesAllOfTheStepBefore) {
  for (const int64_t shares : {1, 2, 3, 5, 32}) {
    std::vector<int64_t> values(static_cast<size_t>(2 * shares), 1);
    std::atomic<int64_t> calls = 0;
    std::atomic<int64_t> wrong = 0;
    SharedSteps steps(shares);
    run_at_once(shares, [&](int64_t own) {
      steps.run(own, kSteps, [&](int64_t step, int64_t share) {
        const int64_t from = step % 2 * shares;
        for (int64_t index = 0; index < shares; ++index) {
          wrong += values[static_cast<size_t>(from + index)] == step + 1 ? 0 : 1;
        }
        values[static_cast<size_t>((step + 1) % 2 * shares + share)] = step + 2;
        ++calls;
      });
    });
    EXPECT_EQ(calls, kSteps * shares) << shares << " shares";
    EXPECT_EQ(wrong, 0) << shares << " shares";
  }
}

TEST(SharedSteps, OneThreadAloneTakesAllShares) {
  SharedSteps steps(2);
  Calls calls;
  const auto add = [&](int64_t step, int64_t share) { calls.emplace_back(step, share); };
  steps.run(1, 2, add);
  EXPECT_EQ(calls, (Calls{{0, 1}, {0, 0}, {1, 1}, {1, 0}}));
  // A thread that begins after all steps are done finds nothing to do.
  steps.run(0, 2, add);
  EXPECT_EQ(calls.size(), 4U);
}

TEST(SharedSteps, OneThatBeginsLateTakesItsShareOfTheStepsThatAreLeft) {
  SharedSteps steps(2);
  Calls late;
  std::thread other;
  std::atomic<bool> has_begun = false;
  steps.run(0, kSteps, [&](int64_t step, int64_t) {
    if (step == 3 && !other.joinable()) {
      other = std::thread([&] {
        steps.run(1, kSteps, [&](int64_t taken, int64_t share) {
          late.emplace_back(taken, share);
          has_begun = true;
        });
      });
      while (!has_begun) std::this_thread::yield();
    }
  });
  other.join();
  ASSERT_FALSE(late.empty());
  EXPECT_EQ(late.front(), (std::pair<int64_t, int64_t>{3, 1}));
}

}  // namespace
}  // namespace tessera::native
