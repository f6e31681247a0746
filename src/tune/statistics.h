// From samples to a time and how sure it is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera::tuning {

// What one round found.
struct Sample {
  double seconds = 0;
  // How many times slower than at best the cores were, and are one time in ten.
  double slowdown = 1;
  double slowdown_often = 1;
};

// A measured time. In another process the same thing is found in [low, high], about 19 times of 20.
struct Timing {
  double seconds = 0;  // the lower quartile of the rounds
  double low = 0;
  double high = 0;
  int rounds = 0;
  // Half of the interval, relative to `seconds`.
  double half_width() const;
  bool operator==(const Timing&) const = default;
};

// What differs from process to process and no number of rounds in one of them shows: where buffers
// lie in physical memory, and the clock.
inline constexpr double kProcessVariation = 0.015;
inline constexpr double kClockSeconds = 3e-7;

// Of `samples` (one a round, at least one) the lower quartile, because whatever else runs on the
// machine only slows; with its nonparametric 95 % confidence interval: the order statistics whose
// ranks a binomial distribution gives (Conover, Practical Nonparametric Statistics, 3.2). Few
// samples say little about what else could have come, so that below nine the interval is widened,
// by the square of their number. The interval is then drawn out to what would be found on cores at
// their best, and on cores as slow as they are one time in ten: another process may meet either.
// Last, kProcessVariation and kClockSeconds are added on both sides.
Timing summarise(std::span<const Sample> samples);

// The same of times alone.
Timing summarise(std::span<const double> seconds);

// Times by contender and turn, as they would be had the machine been as fast in each turn as in the
// faster ones: what made a turn slow met all contenders that ran in it. Those that sat out the last
// turns have fewer times. By a median polish of logarithms (Tukey, Exploratory Data Analysis, 1977,
// chapter 11).
std::vector<std::vector<double>> without_turns(std::vector<std::vector<double>> seconds);

}  // namespace tessera::tuning
