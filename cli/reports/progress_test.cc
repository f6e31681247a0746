#include "cli/reports/progress.h"

#include <gtest/gtest.h>

namespace tessera::cli {
namespace {

constexpr size_t kWide = 200;

TuneProgress measuring() {
  return {.what = "Conv mylib:winograd",
          .done = 11,
          .total = 40,
          .best_seconds = 12.34e-6,
          .seconds_left = 9};
}

TEST(ProgressText, NamesPhaseCountTimeAndWhat) {
  EXPECT_EQ(
      progress_text(measuring(), 0, 3, kWide),
      "measuring candidates, 12 of 40, about 9 s left: Conv mylib:winograd, best 12.3 \xc2\xb5s");
  EXPECT_EQ(
      progress_text({.done = 2, .total = 7, .seconds_left = 12.4, .phase = BindPhase::Comparing}, 0,
                    3, kWide),
      "comparing whole plans, 3 of 7, about 12 s left");
  // The name is the one in the table of plans that were run.
  const ContenderDescription contender{.kind = ContenderKind::Solved, .round = 2};
  EXPECT_EQ(progress_text(
                {.what = "solved, round 2", .phase = BindPhase::Comparing, .contender = contender},
                0, 0, kWide),
            "comparing whole plans: best by timed steps, round 2");
  EXPECT_EQ(
      progress_text({.what = "for the first runs", .phase = BindPhase::Comparing}, 0, 0, kWide),
      "comparing whole plans: for the first runs");
}

TEST(ProgressText, CountsDownAndNeverSaysThatNothingIsLeft) {
  EXPECT_EQ(progress_text({.seconds_left = 3, .phase = BindPhase::Comparing}, 1, 5, kWide),
            "comparing whole plans, about 2 s left");
  // The last candidate takes longer than estimated.
  for (const double since : {2.6, 3.0, 20.0}) {
    const std::string text =
        progress_text({.done = 165, .total = 165, .seconds_left = 3, .phase = BindPhase::Measuring},
                      since, 5 + since, kWide);
    EXPECT_EQ(text, "measuring candidates, 165 of 165, " +
                        std::to_string(static_cast<int>(5 + since)) + " s so far");
  }
}

TEST(ProgressText, SaysWhereMoreMayCome) {
  TuneProgress progress = measuring();
  progress.what.clear();
  progress.best_seconds = 0;
  progress.may_grow = true;
  EXPECT_EQ(progress_text(progress, 0, 3, kWide),
            "measuring candidates, 12 of 40 or more, at least 9 s left");
  progress.seconds_allowed = 20;
  EXPECT_EQ(progress_text(progress, 0, 3, kWide),
            "measuring candidates, 12 of 40 or more, at least 9 s left");
  progress.seconds_allowed = 4;
  EXPECT_EQ(progress_text(progress, 0, 3, kWide),
            "measuring candidates, 12 of 40 or more, at most 4 s left");
}

TEST(ProgressText, SaysHowLongWhereNothingIsKnownOfWhatIsLeft) {
  EXPECT_EQ(progress_text({.phase = BindPhase::Choosing}, 0.2, 0.9, kWide), "choosing a plan");
  EXPECT_EQ(progress_text({.phase = BindPhase::Choosing}, 0.2, 4.2, kWide),
            "choosing a plan, 4 s so far");
}

TEST(ProgressText, IsBoundByTheBudget) {
  TuneProgress progress = measuring();
  progress.what.clear();
  progress.best_seconds = 0;
  progress.seconds_allowed = 4;
  EXPECT_EQ(progress_text(progress, 1, 2, kWide),
            "measuring candidates, 12 of 40, at most 3 s left");
  progress.seconds_allowed = 20;
  EXPECT_EQ(progress_text(progress, 1, 2, kWide), "measuring candidates, 12 of 40, about 8 s left");
  progress.seconds_left.reset();
  EXPECT_EQ(progress_text(progress, 1, 2, kWide),
            "measuring candidates, 12 of 40, 2 s so far, at most 19 s left");
  // Measuring continues although the budget is spent.
  EXPECT_EQ(progress_text(progress, 20, 21, kWide), "measuring candidates, 12 of 40, 21 s so far");
}

TEST(ProgressText, SaysOnWhomItWaits) {
  EXPECT_EQ(
      progress_text({.what = "waiting for process 7", .phase = BindPhase::Waiting}, 0, 2, kWide),
      "waiting for process 7, 2 s so far");
}

TEST(ProgressText, FitsTheTerminal) {
  TuneProgress progress = measuring();
  progress.what = "Conv \xe6\xbc\xa2\x1b[2J" + std::string(300, 'x');
  for (const size_t columns : {1U, 10U, 40U, 79U, 159U}) {
    const std::string text = progress_text(progress, 0, 0, columns);
    // The ellipsis is the only character outside of ASCII.
    size_t characters = 0;
    for (const char letter : text) characters += (static_cast<uint8_t>(letter) & 0xc0U) != 0x80U;
    EXPECT_LE(characters, columns) << text;
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
  }
  EXPECT_TRUE(progress_text(progress, 0, 0, 60)
                  .starts_with("measuring candidates, 12 of 40, about 9 s left"));
}

}  // namespace
}  // namespace tessera::cli
