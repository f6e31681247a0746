#include "measure/measure_group.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <limits>
#include <span>
#include <utility>

namespace tessera::tuning {
namespace {

// The number of rounds of a candidate that is not far behind, and the maximum number.
constexpr int kMinRounds = 5;
constexpr int kMaxRounds = 30;
// After `rounds` rounds, a candidate that is `times` slower than the best one is dropped.
struct FarBehind {
  int rounds = 0;
  double times = 0;
};
constexpr std::array<FarBehind, 3> kFarBehind = {{{1, 1.7}, {2, 1.4}, {3, 1.2}}};
// An interval this narrow, apart from the variation between processes, needs no more rounds.
constexpr double kNarrowWidth = 0.05;
// The time limit for all rounds of a candidate after the minimum number, including overhead.
constexpr double kSecondsForRounds = 0.02;
// The time limit before that number, because the interval of a slow candidate stays wide anyway.
constexpr double kMaxSeconds = 0.1;

// If several threads take longer than this for products, one thread cannot win by saving the cost
// of starting them. (The steps of a recurrence are short, however many there are.)
constexpr double kLongForOneThread = 5e-4;

// For short kernels, a round is the minimum of several runs, because disturbances only slow down.
int runs_of_round(double seconds) { return seconds < 1e-4 ? 3 : seconds < 1e-3 ? 2 : 1; }

std::string seconds_text(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g s", seconds);
  return text.data();
}

double typical(std::span<const Sample> samples) { return summarise(samples).seconds; }

// Whether more rounds would hardly narrow the interval, apart from the slowdown of the cores.
bool is_narrow(std::span<const Sample> samples) {
  std::vector<double> seconds;
  for (const Sample& sample : samples) seconds.push_back(sample.seconds);
  return summarise(seconds).half_width() <= kNarrowWidth + kProcessVariation;
}

Sample sample_of(const Outcome& outcome) {
  return {outcome.seconds, outcome.slowdown, outcome.slowdown_p90};
}

class GroupMeasurement {
 public:
  GroupMeasurement(std::span<Trial> trials, const MeasureLimits& limits, double best_seconds,
                   const TrialWatcher& watcher)
      : trials_(trials), limits_(limits), best_(best_seconds), watcher_(watcher) {}

  bool run() {
    bool goes_on = true;
    for (Trial& trial : trials_) {
      goes_on = watcher_(trial, reported_best());
      if (!goes_on) break;
      begin(trial);
      trial.is_begun = true;
      trial.is_finished = is_done(trial);
    }
    if (goes_on) goes_on = run_rounds();
    for (Trial& trial : trials_) finish(trial);
    return goes_on;
  }

  double best_seconds() const { return best_; }

 private:
  double reported_best() const { return best_ < std::numeric_limits<double>::max() ? best_ : 0; }

  static void refuse(Trial& trial, const std::string& reason) {
    if (!trial.cost) trial.cost.emplace();
    trial.cost->refusal = reason;
    trial.is_dropped = true;
  }

  // The measuring process was lost, and with it all of its kernels.
  void lose(const Bench* bench) {
    for (Trial& other : trials_) {
      if (other.bench == bench) other.is_built = false;
    }
  }

  bool build(Trial& trial) {
    Outcome built = trial.bench->build(trial.id);
    if (built.is_unknown && trial.fallback != nullptr) {
      trial.bench = std::exchange(trial.fallback, nullptr);
      built = trial.bench->build(trial.id);
    }
    if (built.is_lost) lose(trial.bench);
    if (!built.is_fine()) {
      refuse(trial, "its kernel could not be built: " + built.reason);
      return false;
    }
    if (built.seconds > trial.build_limit_seconds) {
      refuse(trial, "its kernel took " + seconds_text(built.seconds) +
                        " to build, expected at most " + seconds_text(trial.build_limit_seconds));
      return false;
    }
    trial.is_built = true;
    trial.cost->build_seconds = built.seconds;
    return true;
  }

  void begin(Trial& trial) {
    if (trial.bound_seconds > best_ || (trial.is_single_threaded && best_ > kLongForOneThread)) {
      trial.is_dropped = true;
      return;
    }
    trial.cost.emplace();
    if (!build(trial)) return;
    Checked checked = trial.bench->check(trial.id);
    if (checked.is_lost) lose(trial.bench);
    if (!checked.is_fine() && limits_.add_limits && limits_.add_limits()) {
      for (Trial& other : trials_) other.is_built = false;
      if (!build(trial)) return;
      checked = trial.bench->check(trial.id);
      if (checked.is_lost) lose(trial.bench);
    }
    trial.cost->error = checked.error;
    trial.cost->tolerance = checked.tolerance;
    if (!checked.is_fine()) return refuse(trial, checked.reason);
    if (limits_.only_checks) {
      trial.is_dropped = true;
      return;
    }
    // One run for first-time effects, and a round that counts.
    const std::optional<Sample> first = run(trial, 1);
    if (!first) return;
    if (first->seconds > limits_.candidate_timeout_seconds) {
      return refuse(trial, "one run took " + seconds_text(first->seconds) + ", expected at most " +
                               seconds_text(limits_.candidate_timeout_seconds));
    }
    run_round(trial, first->seconds);
  }

  // The fastest of `runs` runs.
  std::optional<Sample> run(Trial& trial, int runs) {
    const Outcome outcome = trial.bench->run(trial.id, limits_.weights, runs);
    if (outcome.is_fine()) return sample_of(outcome);
    if (outcome.is_lost) lose(trial.bench);
    refuse(trial, outcome.reason);
    return std::nullopt;
  }

  // `seconds`: of a run, about.
  void run_round(Trial& trial, double seconds) {
    if (!trial.is_built && !build(trial)) return;
    const auto start = std::chrono::steady_clock::now();
    const std::optional<Sample> fastest = run(trial, runs_of_round(seconds));
    if (!fastest) return;
    trial.samples.push_back(*fastest);
    trial.spent_seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best_ = std::min(best_, typical(trial.samples));
  }

  bool is_done(const Trial& trial) const {
    if (trial.is_dropped || trial.samples.empty()) return true;
    const auto rounds = static_cast<int>(trial.samples.size());
    const double middle = typical(trial.samples);
    for (const FarBehind& behind : kFarBehind) {
      if (rounds >= behind.rounds && middle > behind.times * best_) return true;
    }
    if (trial.spent_seconds > kMaxSeconds) return true;
    if (rounds < kMinRounds) return false;
    if (rounds >= kMaxRounds || trial.spent_seconds > kSecondsForRounds) return true;
    return is_narrow(trial.samples);
  }

  // In each round, every candidate runs once; rounds begin with different candidates.
  bool run_rounds() {
    for (size_t round = 0;; ++round) {
      bool is_busy = false;
      for (size_t index = 0; index < trials_.size(); ++index) {
        Trial& trial = trials_[(index + round) % trials_.size()];
        if (is_done(trial)) continue;
        is_busy = true;
        if (!watcher_(trial, reported_best())) return false;
        run_round(trial, typical(trial.samples));
        trial.is_finished = is_done(trial);
      }
      if (!is_busy) return true;
    }
  }

  void finish(Trial& trial) const {
    if (trial.is_built) trial.bench->drop(trial.id);
    trial.is_built = false;
    if (!trial.cost || !trial.cost->refusal.empty()) return;
    if (limits_.only_checks) return;
    if (trial.samples.empty()) {
      // Stopped before it ran.
      trial.cost.reset();
      return;
    }
    auto& timing = limits_.weights == Weights::Cold ? trial.cost->cold : trial.cost->warm;
    timing = summarise(trial.samples);
  }

  std::span<Trial> trials_;
  const MeasureLimits& limits_;
  double best_;
  const TrialWatcher& watcher_;
};

}  // namespace

bool measure_group(std::vector<Trial>& trials, const MeasureLimits& limits, double best_seconds,
                   const TrialWatcher& watcher) {
  size_t begin = 0;
  while (begin < trials.size()) {
    size_t end = begin;
    int64_t bytes = 0;
    while (end < trials.size() &&
           (end == begin || bytes + trials[end].bytes <= limits.buffer_bytes)) {
      bytes += trials[end++].bytes;
    }
    GroupMeasurement measurement(std::span<Trial>(trials).subspan(begin, end - begin), limits,
                                 best_seconds, watcher);
    const bool goes_on = measurement.run();
    best_seconds = measurement.best_seconds();
    if (!goes_on) return false;
    begin = end;
  }
  return true;
}

ConversionCost measure_conversion(Bench& bench, const ConversionKey& key, int64_t bytes) {
  ConversionCost cost{.bytes = bytes};
  std::vector<Sample> samples;
  double spent = 0;
  const auto run = [&](int runs) {
    const Outcome outcome = bench.convert(key, runs);
    if (!outcome.is_fine()) cost.refusal = outcome.reason;
    spent += runs * outcome.seconds;
    return sample_of(outcome);
  };
  const int runs = runs_of_round(run(1).seconds);
  while (cost.refusal.empty()) {
    samples.push_back(run(runs));
    const bool is_enough =
        static_cast<int>(samples.size()) >= kMinRounds || spent > kSecondsForRounds;
    if (is_enough) break;
  }
  if (cost.refusal.empty()) cost.timing = summarise(samples);
  return cost;
}

}  // namespace tessera::tuning
