#include "cli/process/trial_process.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "base/matchers_test.h"

namespace tessera::cli {
namespace {

using std::chrono::seconds;

constexpr seconds kLong{60};

TEST(TrialProcess, WhatReturnsOrThrowsIsFine) {
  int changed = 0;
  EXPECT_EQ(explain_failed_trial([&] { changed = 1; }, kLong), "");
  EXPECT_EQ(changed, 0) << "in another process";
  EXPECT_EQ(explain_failed_trial([] { throw std::runtime_error("no"); }, kLong), "");
}

TEST(TrialProcess, SaysHowItEnded) {
  EXPECT_THAT(explain_failed_trial([] { std::raise(SIGKILL); }, kLong), HasSubstr("signal 9"));
  EXPECT_THAT(explain_failed_trial([] { std::_Exit(0); }, kLong), HasSubstr("exit code 0"));
  EXPECT_THAT(explain_failed_trial([] { std::_Exit(4); }, kLong), HasSubstr("exit code 4"));
}

TEST(TrialProcess, DoesNotWaitForever) {
  const auto hang = [] { std::this_thread::sleep_for(std::chrono::hours(1)); };
  EXPECT_EQ(explain_failed_trial(hang, seconds(1)), "did not return within 1 s");
}

TEST(TrialProcess, WhatItPrintsIsNotSeen) {
  testing::internal::CaptureStdout();
  explain_failed_trial(
      [] {
        std::puts("noise");
        std::fflush(stdout);
      },
      kLong);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace tessera::cli
