// Finds the fastest of several contenders from rounds in which each of them runs once.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "measure/measure_tuning.h"
#include "price/statistics.h"

namespace tessera::tuning {

// The time of a contender divided by that of another in the same round, so that a disturbance of
// both cancels: the median, and its 95 % interval, which is unbounded after few rounds.
struct PairedRatio {
  double middle = 1;
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
};

// From the logarithms of the ratios of some rounds (at least one): the median of the means of all
// pairs of rounds, and the interval of Wilcoxon's signed-rank test (Hollander, Wolfe and Chicken,
// Nonparametric Statistical Methods, 3.2 and 3.3).
PairedRatio summarise_ratios(std::span<const double> logarithms);

// The state of a race after some rounds. Contenders that can no longer win drop out, so the others
// run more often (successive halving).
class Race {
 public:
  // By contender: seconds that are added to each of its times, such as its share of a build time.
  // At least one contender.
  explicit Race(std::vector<double> extra_seconds, const MeasureTuning& tuning = {});

  // The contenders of the next round, ascending. Never empty.
  const std::vector<size_t>& running() const { return running_; }
  size_t rounds() const { return rounds_; }

  // Adds a round: the seconds of the contenders in running(), in this order.
  void add_round(std::span<const double> seconds);

  // Whether further rounds are useless: no other contender can be noticeably faster than the one
  // that leads.
  bool is_decided() const;

  // After at least one round: the first contender, in their order, that is at most half a percent
  // slower than the leader, by a difference that may be noise.
  size_t winner() const;

  // After at least one round, without the extra seconds: for the winner, the median of its times.
  // For the others, the winner's median times their ratio to it, because contenders that dropped
  // out ran in other rounds.
  std::vector<Timing> timings() const;

 private:
  size_t leader() const;
  bool can_win(size_t contender, size_t leader) const;
  // The ratio to the time of `other` in the rounds that both ran.
  PairedRatio ratio(size_t contender, size_t other) const;

  MeasureTuning tuning_;
  std::vector<double> extra_seconds_;             // by contender
  std::vector<std::vector<double>> seconds_;      // by contender and round, without extra ones
  std::vector<std::vector<double>> log_seconds_;  // logarithms, with extra ones
  std::vector<size_t> running_;
  size_t rounds_ = 0;
};

}  // namespace tessera::tuning
