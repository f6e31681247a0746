// Derives a time and its confidence interval from samples.
#pragma once

#include <cstdint>
#include <span>

namespace tessera::tuning {

// The result of one round.
struct Sample {
  double seconds = 0;
  // The slowdown of the cores relative to their best, during the round and exceeded one time in
  // ten.
  double slowdown = 1;
  double slowdown_p90 = 1;
};

// A measured time. A measurement in another process is in [low, high] in about 19 of 20 cases.
struct Timing {
  double seconds = 0;  // lower quartile of the rounds
  double low = 0;
  double high = 0;
  int rounds = 0;
  // Half of the interval's width, relative to `seconds`.
  double half_width() const;
  bool operator==(const Timing&) const = default;
};

// The relative variation between processes that more rounds in one process cannot reveal: physical
// placement of buffers, and the clock.
inline constexpr double kProcessVariation = 0.015;
inline constexpr double kClockSeconds = 3e-7;

// The lower quartile of `samples` (one per round, at least one), because disturbances only slow
// down, with its nonparametric 95 % confidence interval: the order statistics with ranks from a
// binomial distribution (Conover, Practical Nonparametric Statistics, 3.2). Fewer than nine samples
// widen the interval by an amount inversely proportional to the square of their number. Then the
// interval is extended to the times on cores at their best, and on cores as slow as they are one
// time in ten, because another process may meet either. Finally, kProcessVariation and
// kClockSeconds are added on both sides.
Timing summarise(std::span<const Sample> samples);

// Same as summarise(samples), for times alone.
Timing summarise(std::span<const double> seconds);

}  // namespace tessera::tuning
