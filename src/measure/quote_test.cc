#include "measure/quote.h"

#include "base/matchers_test.h"

namespace tessera {
namespace {

using testing::DoubleNear;
using testing::Optional;

TEST(Quote, AddsUpWhatTuningDoes) {
  EXPECT_NEAR(make_quote({}).seconds, 1.5, 1e-9);
  EXPECT_NEAR(make_quote({.candidates = 100}).seconds, 2.3, 1e-9);
  EXPECT_NEAR(make_quote({.run_seconds = 0.04}).seconds, 4.3, 1e-9);
  EXPECT_NEAR(make_quote({.weight_bytes = 100'000'000}).seconds, 3, 1e-9);
  const TuningQuote all = make_quote(
      {.candidates = 100, .run_seconds = 0.04, .weight_bytes = 100'000'000, .budget_seconds = 60});
  EXPECT_NEAR(all.seconds, 6.6, 1e-9);
  EXPECT_EQ(all.candidates, 100);
  EXPECT_EQ(all.run_seconds, 0.04);
}

TEST(Quote, IsAtMostTheBudget) {
  EXPECT_EQ(make_quote({.candidates = 1000, .budget_seconds = 0.5}).seconds, 0.5);
}

TEST(Quote, KnowsNoGainFromTwoModels) {
  const TuningQuote quote = make_quote({.run_seconds = 0.01, .gains = {0.2, 0.3}});
  EXPECT_EQ(quote.gain_low, std::nullopt);
  EXPECT_EQ(quote.gain_high, std::nullopt);
  EXPECT_EQ(quote.runs, std::nullopt);
  EXPECT_EQ(quote_text(quote), "about 2 s, gain unknown, as fewer than 3 models were tuned here");
}

TEST(Quote, LeavesOutOneOfTenGainsAtEachEnd) {
  QuoteBasis basis{.run_seconds = 0.01};
  for (int percent = 19; percent > 0; --percent) basis.gains.push_back(0.01 * percent);
  const TuningQuote quote = make_quote(basis);
  EXPECT_THAT(quote.gain_low, Optional(DoubleNear(0.02, 1e-9)));
  EXPECT_THAT(quote.gain_high, Optional(DoubleNear(0.18, 1e-9)));
  // 2.2 s of tuning; a tenth of 10 ms is saved in each run.
  EXPECT_THAT(quote.runs, Optional(AllOf(testing::Ge(2200), testing::Le(2201))));
  EXPECT_EQ(quote_text(quote), "about 2 s, likely gain 2 to 18 %, pays back after 2,200 runs");
}

TEST(Quote, TakesTheWholeRangeOfFewGains) {
  const TuningQuote quote = make_quote({.run_seconds = 0.01, .gains = {0.3, 0.1, 0.2}});
  EXPECT_EQ(quote.gain_low, 0.1);
  EXPECT_EQ(quote.gain_high, 0.3);
}

TEST(Quote, NamesNoRunsIfHalfOfTheModelsGainedNothing) {
  const TuningQuote quote = make_quote({.run_seconds = 0.01, .gains = {0, 0, 0.004, 0.1}});
  EXPECT_EQ(quote.runs, std::nullopt);
  EXPECT_EQ(quote_text(quote), "about 2 s, likely gain 0 to 10 %, may not pay back");
}

TEST(Quote, HasATextWithFewDigits) {
  const auto with_runs = [](int64_t runs) {
    return quote_text({.seconds = 14.6, .gain_low = 0.2, .gain_high = 0.204, .runs = runs});
  };
  EXPECT_EQ(with_runs(1), "about 15 s, likely gain 20 %, pays back after 1 run");
  EXPECT_EQ(with_runs(87), "about 15 s, likely gain 20 %, pays back after 87 runs");
  EXPECT_EQ(with_runs(999), "about 15 s, likely gain 20 %, pays back after 1,000 runs");
  EXPECT_EQ(with_runs(1'234'567), "about 15 s, likely gain 20 %, pays back after 1,200,000 runs");
  EXPECT_THAT(quote_text({.seconds = 0.1}), StartsWith("about 0.1 s,"));
  EXPECT_THAT(quote_text({.seconds = 1e-6}), StartsWith("about 0.1 s,"));
  EXPECT_EQ(quote_text({.is_known = true, .seconds = 4}),
            "nothing to measure, a cache has the fastest plan; measuring again takes about 4 s");
}

}  // namespace
}  // namespace tessera
