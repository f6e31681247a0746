// From samples to a time and how sure it is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera::tuning {

// A measured time. In another process the same thing is found in [low, high], about 19 times of 20.
struct Timing {
  double seconds = 0;  // a median
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
inline constexpr double kClockSeconds = 2e-7;

// Of `samples` (one a round, at least one) the median, with its nonparametric 95 % confidence
// interval: the order statistics whose ranks a binomial distribution gives (Conover, Practical
// Nonparametric Statistics, 3.2). With fewer than 6 samples that is all of them, and as they say
// little about what else could have come, the interval is widened by their number. Then
// kProcessVariation and kClockSeconds are added on both sides.
Timing summarise(std::span<const double> samples);

}  // namespace tessera::tuning
