#include "api/state/plan_swap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace tessera {
namespace {

NextPlan plan_with(int kernels) {
  NextPlan next;
  next.plan.kernels = kernels;
  return next;
}

TEST(PlanSwap, BeginsBeforeTheSecondRun) {
  std::atomic<int> builds = 0;
  PlanSwap swap([&](CancellationToken&) -> std::optional<NextPlan> {
    ++builds;
    return plan_with(7);
  });
  EXPECT_FALSE(swap.is_ready_before_run());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(builds, 0);
  while (!swap.is_ready_before_run()) std::this_thread::yield();
  EXPECT_EQ(builds, 1);
  const PlanSwap::Built built = swap.take();
  ASSERT_TRUE(built.next);
  EXPECT_EQ(built.next->plan.kernels, 7);
  EXPECT_EQ(built.failure, "");
}

TEST(PlanSwap, BeginsAfterAsManyRunsAsItIsTold) {
  std::atomic<int> builds = 0;
  PlanSwap swap(
      [&](CancellationToken&) -> std::optional<NextPlan> {
        ++builds;
        return std::nullopt;
      },
      20);
  for (int run = 0; run < 20; ++run) EXPECT_FALSE(swap.is_ready_before_run());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(builds, 0);
  while (!swap.is_ready_before_run()) std::this_thread::yield();
  EXPECT_EQ(builds, 1);
}

TEST(PlanSwap, WaitingBuildsWhatNoRunHasBegun) {
  PlanSwap swap([](CancellationToken&) -> std::optional<NextPlan> { return plan_with(3); });
  swap.wait();
  EXPECT_TRUE(swap.is_ready_before_run());
  EXPECT_EQ(swap.take().next->plan.kernels, 3);
}

TEST(PlanSwap, AFailureIsToldAndNothingMore) {
  PlanSwap swap([](CancellationToken&) -> std::optional<NextPlan> {
    throw std::runtime_error("out of luck");
  });
  swap.wait();
  const PlanSwap::Built built = swap.take();
  EXPECT_FALSE(built.next);
  EXPECT_EQ(built.failure, "out of luck");
}

TEST(PlanSwap, GoingItWaitsForWhatItBuilds) {
  std::atomic<bool> is_built = false;
  {
    PlanSwap swap([&](CancellationToken&) -> std::optional<NextPlan> {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      is_built = true;
      return std::nullopt;
    });
    swap.is_ready_before_run();
    swap.is_ready_before_run();
  }
  EXPECT_TRUE(is_built);
}

TEST(PlanSwap, GoingItCancelsWhatIsLeftToBuild) {
  PlanSwap swap([](CancellationToken& end) -> std::optional<NextPlan> {
    while (!end.is_cancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return std::nullopt;
  });
  swap.is_ready_before_run();
  swap.is_ready_before_run();
}

}  // namespace
}  // namespace tessera
