#include "api/plan_swap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace tessera {
namespace {

PlanResult result_with(int kernels) {
  PlanResult result;
  result.kernels = kernels;
  return result;
}

TEST(PlanSwap, BeginsBeforeTheSecondRun) {
  std::atomic<int> builds = 0;
  PlanSwap swap([&](TaskEnd&) -> std::optional<PlanResult> {
    ++builds;
    return result_with(7);
  });
  EXPECT_FALSE(swap.is_ready_before_run());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(builds, 0);
  while (!swap.is_ready_before_run()) std::this_thread::yield();
  EXPECT_EQ(builds, 1);
  const PlanSwap::Built built = swap.take();
  ASSERT_TRUE(built.result);
  EXPECT_EQ(built.result->kernels, 7);
  EXPECT_EQ(built.failure, "");
}

TEST(PlanSwap, WaitingBuildsWhatNoRunHasBegun) {
  PlanSwap swap([](TaskEnd&) -> std::optional<PlanResult> { return result_with(3); });
  swap.wait();
  EXPECT_TRUE(swap.is_ready_before_run());
  EXPECT_EQ(swap.take().result->kernels, 3);
}

TEST(PlanSwap, AFailureIsToldAndNothingMore) {
  PlanSwap swap(
      [](TaskEnd&) -> std::optional<PlanResult> { throw std::runtime_error("out of luck"); });
  swap.wait();
  const PlanSwap::Built built = swap.take();
  EXPECT_FALSE(built.result);
  EXPECT_EQ(built.failure, "out of luck");
}

TEST(PlanSwap, GoingItWaitsForWhatItBuilds) {
  std::atomic<bool> is_built = false;
  {
    PlanSwap swap([&](TaskEnd&) -> std::optional<PlanResult> {
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
  PlanSwap swap([](TaskEnd& end) -> std::optional<PlanResult> {
    while (!end.is_cancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return std::nullopt;
  });
  swap.is_ready_before_run();
  swap.is_ready_before_run();
}

}  // namespace
}  // namespace tessera
