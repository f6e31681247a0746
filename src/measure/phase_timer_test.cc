#include "measure/phase_timer.h"

#include <gtest/gtest.h>

namespace tessera::tuning {
namespace {

TEST(RemainingTime, IsJudgedByWhatWasDone) {
  RemainingTime time;
  EXPECT_EQ(time.estimate(BindPhase::Measuring, 0, 10, 1), std::nullopt);
  EXPECT_EQ(time.estimate(BindPhase::Measuring, 2, 10, 5), 16);
  EXPECT_EQ(time.estimate(BindPhase::Measuring, 8, 10, 9), 2);
}

TEST(RemainingTime, OfOtherPhasesDoesNotCount) {
  RemainingTime time;
  time.estimate(BindPhase::Measuring, 0, 2, 0);
  time.estimate(BindPhase::Choosing, 0, 0, 1);
  time.estimate(BindPhase::Measuring, 1, 4, 100);
  // One second for the first unit; the 99 s of choosing do not count.
  EXPECT_EQ(time.estimate(BindPhase::Measuring, 1, 5, 100), 4);
}

TEST(RemainingTime, IsNotKnownOnceAnEstimateIsOverrun) {
  RemainingTime time;
  time.estimate(BindPhase::Comparing, 0, 2, 0);
  EXPECT_EQ(time.estimate(BindPhase::Comparing, 1, 2, 3), 3);
  // Counts down, and then gives no estimate instead of "0 s left".
  EXPECT_EQ(time.estimate(BindPhase::Comparing, 1, 2, 5), 1);
  EXPECT_EQ(time.estimate(BindPhase::Comparing, 1, 2, 6), std::nullopt);
  EXPECT_EQ(time.estimate(BindPhase::Comparing, 1, 2, 20), std::nullopt);
  EXPECT_EQ(time.estimate(BindPhase::Comparing, 2, 2, 21), std::nullopt);
}

TEST(RemainingTime, BeginsAnewWhereAPhaseCountsFromZero) {
  RemainingTime time;
  time.estimate(BindPhase::Building, 0, 4, 0);
  EXPECT_EQ(time.estimate(BindPhase::Building, 2, 4, 20), 20);
  EXPECT_EQ(time.estimate(BindPhase::Building, 0, 8, 40), std::nullopt);
  EXPECT_EQ(time.estimate(BindPhase::Building, 4, 8, 44), 4);
}

TEST(RemainingTime, IsNotKnownWithoutATotal) {
  RemainingTime time;
  EXPECT_EQ(time.estimate(BindPhase::Choosing, 0, 0, 1), std::nullopt);
  EXPECT_EQ(time.estimate(BindPhase::Choosing, 3, 0, 2), std::nullopt);
}

}  // namespace
}  // namespace tessera::tuning
