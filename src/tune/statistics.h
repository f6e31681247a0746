// From samples to a time and how sure it is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera::tuning {

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
// lie in physical memory, how the machine is clocked, and the clock itself.
inline constexpr double kProcessVariation = 0.06;
inline constexpr double kClockSeconds = 1e-7;

// Of `samples` (one a round, at least one) the lower quartile, because whatever else runs on the
// machine only slows; with its nonparametric 95 % confidence interval: the order statistics whose
// ranks a binomial distribution gives (Conover, Practical Nonparametric Statistics, 3.2). Few
// samples say little about what else could have come, so that below nine the interval is widened by
// their number. Then kProcessVariation and kClockSeconds are added on both sides.
Timing summarise(std::span<const double> samples);

}  // namespace tessera::tuning
