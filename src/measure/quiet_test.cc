#include "measure/quiet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

namespace tessera::tuning {
namespace {

// A machine of two processors whose clock moves only if told so.
class QuietWaiterTest : public testing::Test {
 protected:
  QuietWaiter waiter(int threads) {
    return QuietWaiter(threads, {.read_load = [this] { return load_; },
                                 .sleep = [this](double seconds) { pass(seconds, 0); }});
  }

  // We use `own` processors meanwhile; others use what others_at_() says.
  void pass(double seconds, double own) {
    constexpr double kStep = 0.01;
    for (double passed = 0; passed < seconds; passed += kStep) {
      load_.time += std::chrono::milliseconds(10);
      now_ += kStep;
      const double others = others_at_(now_);
      load_.busy_seconds += kStep * std::min(2.0, own + others);
      load_.own_seconds += kStep * std::min(own, 2 - others);
    }
  }

  // Whether to repeat what takes `seconds` on two processors.
  bool measure(QuietWaiter& waiter, double seconds) {
    waiter.begin();
    pass(seconds, 2);
    return waiter.should_repeat(1e9, [] { return true; });
  }

  ProcessorLoad load_{.processors = 2};
  double now_ = 0;
  std::function<double(double)> others_at_ = [](double) { return 0.0; };
};

TEST_F(QuietWaiterTest, OwnWorkDisturbsNobody) {
  QuietWaiter two = waiter(2);
  for (int time = 0; time < 20; ++time) EXPECT_FALSE(measure(two, 0.2));
  EXPECT_EQ(two.lost_seconds(), 0);
}

TEST_F(QuietWaiterTest, WhatABurstHasDisturbedIsRepeatedAfterIt) {
  others_at_ = [](double now) { return now > 5 && now < 6 ? 1.0 : 0.0; };
  QuietWaiter two = waiter(2);
  while (!measure(two, 0.2)) ASSERT_LT(now_, 5.5);
  EXPECT_GT(now_, 6);
  EXPECT_LT(now_, 6.2);
  EXPECT_NEAR(two.lost_seconds(), 1, 0.3);
  EXPECT_FALSE(measure(two, 0.2));
}

TEST_F(QuietWaiterTest, WhatIsShortIsJudgedWithWhatWasBefore) {
  others_at_ = [](double now) { return now > 5 && now < 6 ? 1.0 : 0.0; };
  QuietWaiter two = waiter(2);
  while (now_ < 5.2) {
    if (measure(two, 0.01)) break;
  }
  EXPECT_GT(now_, 6);
}

TEST_F(QuietWaiterTest, OneThreadIsNotDisturbedOnTheOtherProcessor) {
  others_at_ = [](double) { return 1.0; };
  QuietWaiter one = waiter(1);
  one.begin();
  pass(1, 1);
  EXPECT_FALSE(one.should_repeat(1e9, [] { return true; }));
}

TEST_F(QuietWaiterTest, AMachineThatIsAlwaysBusyIsTakenAsItIs) {
  others_at_ = [](double) { return 1.0; };
  QuietWaiter two = waiter(2);
  for (int time = 0; time < 200; ++time) EXPECT_FALSE(measure(two, 0.1));
  EXPECT_LT(two.lost_seconds(), 5.5);
}

TEST_F(QuietWaiterTest, NoMoreTimeIsLostThanUsed) {
  // Every wait succeeds, but everything is disturbed.
  others_at_ = [](double now) { return std::fmod(now, 0.2) < 0.1 ? 1.0 : 0.0; };
  QuietWaiter two = waiter(2);
  for (int time = 0; time < 100; ++time) measure(two, 0.3);
  EXPECT_LE(two.lost_seconds(), 0.5 * now_ + 0.1);
}

TEST_F(QuietWaiterTest, StopsWhenToldSo) {
  others_at_ = [](double now) { return now > 5 ? 1.0 : 0.0; };
  QuietWaiter two = waiter(2);
  pass(6, 2);
  two.begin();
  pass(0.2, 2);
  const double before = now_;
  EXPECT_FALSE(two.should_repeat(1e9, [] { return false; }));
  EXPECT_FALSE(two.should_repeat(0, [] { return true; }));
  EXPECT_EQ(now_, before);
}

}  // namespace
}  // namespace tessera::tuning
