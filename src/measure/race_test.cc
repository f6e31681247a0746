#include "measure/race.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace tessera::tuning {
namespace {

// Runs rounds with normally distributed logarithms of times, all slowed down alike now and then,
// until the race is decided. Returns their number.
size_t run(Race& race, const std::vector<double>& seconds, double spread, unsigned seed,
           size_t max_rounds = 200) {
  std::minstd_rand random(seed);
  std::normal_distribution<double> noise(0, spread);
  std::uniform_real_distribution<double> chance(0, 1);
  while (race.rounds() < max_rounds && !(race.rounds() >= 3 && race.is_decided())) {
    const double machine = chance(random) < 0.2 ? 1.7 : 1;
    std::vector<double> round;
    for (const size_t contender : race.running()) {
      round.push_back(seconds[contender] * machine * std::exp(noise(random)));
    }
    race.add_round(round);
  }
  return race.rounds();
}

TEST(Race, OneContenderWins) {
  Race race({0});
  EXPECT_FALSE(race.is_decided());
  race.add_round(std::vector<double>{0.5});
  EXPECT_TRUE(race.is_decided());
  EXPECT_EQ(race.winner(), 0U);
  EXPECT_EQ(race.timings().front().seconds, 0.5);
}

TEST(Race, DropsWhoIsFarBehindAtOnce) {
  Race race({0, 0, 0});
  race.add_round(std::vector<double>{1, 4.1, 1.9});
  EXPECT_EQ(race.running(), (std::vector<size_t>{0, 2}));
  race.add_round(std::vector<double>{1, 1.6});
  EXPECT_EQ(race.running(), (std::vector<size_t>{0}));
  EXPECT_TRUE(race.is_decided());
}

TEST(Race, OneDisturbedTurnDropsNobody) {
  Race race({0, 0});
  race.add_round(std::vector<double>{1, 3.9});
  race.add_round(std::vector<double>{1, 0.9});
  EXPECT_EQ(race.running().size(), 2U);
}

// Disturbances of a whole round are as large as 70 %.
TEST(Race, FindsADifferenceOfTwoPercentInNoise) {
  int right = 0;
  for (unsigned seed = 1; seed <= 100; ++seed) {
    Race race({0, 0, 0});
    run(race, {1.02, 1.05, 1}, 0.02, seed);
    if (race.winner() == 2) ++right;
  }
  EXPECT_GE(right, 95);
}

TEST(Race, AmongEqualOnesTheFirstWinsAndTheRaceEnds) {
  int first = 0;
  for (unsigned seed = 1; seed <= 100; ++seed) {
    Race race({0, 0});
    EXPECT_LT(run(race, {1, 1}, 0.01, seed), 200U);
    if (race.winner() == 0) ++first;
  }
  // The other one wins if its luck lets the first one drop out, which costs nothing.
  EXPECT_GE(first, 70);
}

TEST(Race, NeverTakesOneThatIsNoticeablySlower) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    Race race({0, 0, 0, 0});
    const std::vector<double> seconds = {1.03, 1.001, 1, 1.04};
    run(race, seconds, 0.005, seed);
    EXPECT_LT(seconds[race.winner()], 1.01) << seed;
  }
}

TEST(Race, ExtraSecondsCountForTheWinnerButNotForItsTime) {
  Race race({0.5, 0});
  for (int round = 0; round < 2; ++round) race.add_round(std::vector<double>{1, 1.1});
  EXPECT_EQ(race.running(), std::vector<size_t>{1});
  EXPECT_EQ(race.winner(), 1U);
  const std::vector<Timing> timings = race.timings();
  EXPECT_NEAR(timings[0].seconds, 1, 1e-9);
  EXPECT_NEAR(timings[1].seconds, 1.1, 1e-9);
}

// A contender that dropped out ran in other rounds, here only in a slow one.
TEST(Race, TimesOfThoseThatDroppedOutAreThoseOfTheWinnersRounds) {
  Race race({0, 0});
  race.add_round(std::vector<double>{2, 10});
  for (int round = 0; round < 9; ++round) race.add_round(std::vector<double>{1});
  const std::vector<Timing> timings = race.timings();
  EXPECT_NEAR(timings[0].seconds, 1, 1e-9);
  EXPECT_NEAR(timings[1].seconds, 5, 1e-9);
  EXPECT_EQ(timings[1].rounds, 1);
}

// The tabulated interval of Wilcoxon's test for ten pairs at 95.1 % excludes eight of the 55 means
// on each side.
TEST(Race, IntervalIsThatOfTheSignedRankTest) {
  std::vector<double> logarithms;
  for (int index = 0; index < 10; ++index) logarithms.push_back(std::log(1.0 + index));
  std::vector<double> means;
  for (size_t left = 0; left < 10; ++left) {
    for (size_t right = left; right < 10; ++right) {
      means.push_back((logarithms[left] + logarithms[right]) / 2);
    }
  }
  std::ranges::sort(means);
  const PairedRatio ratio = summarise_ratios(logarithms);
  EXPECT_DOUBLE_EQ(ratio.low, std::exp(means[7]));
  EXPECT_DOUBLE_EQ(ratio.high, std::exp(means[47]));
  EXPECT_DOUBLE_EQ(ratio.middle, std::exp(means[27]));
}

TEST(Race, FewRoundsHaveNoInterval) {
  const PairedRatio ratio = summarise_ratios(std::vector<double>{0.1, 0.1, 0.1, 0.1, 0.1});
  EXPECT_EQ(ratio.low, 0);
  EXPECT_TRUE(std::isinf(ratio.high));
}

}  // namespace
}  // namespace tessera::tuning
