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

// For short kernels, a round is the minimum of several runs, because disturbances only slow down.
int runs_of_round(double seconds, const MeasureTuning& tuning) {
  return seconds < tuning.three_runs_below_seconds ? 3
         : seconds < tuning.two_runs_below_seconds ? 2
                                                   : 1;
}

std::string seconds_text(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g s", seconds);
  return text.data();
}

double typical(std::span<const Sample> samples) { return summarise(samples).seconds; }

// Whether more rounds would hardly narrow the interval, apart from the slowdown of the cores.
bool is_narrow(std::span<const Sample> samples, const MeasureTuning& tuning) {
  std::vector<double> seconds;
  for (const Sample& sample : samples) seconds.push_back(sample.seconds);
  return summarise(seconds).half_width() <= tuning.kernel_narrow_width + kProcessVariation;
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
    if (trial.bound_seconds > best_ ||
        (trial.is_single_threaded && best_ > limits_.tuning.long_for_one_thread_seconds)) {
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
    const std::optional<Sample> fastest = run(trial, runs_of_round(seconds, limits_.tuning));
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
    const MeasureTuning& tuning = limits_.tuning;
    for (const MeasureTuning::FarBehind& behind : tuning.kernel_far_behind) {
      if (rounds >= behind.rounds && middle > behind.times * best_) return true;
    }
    if (trial.spent_seconds > tuning.kernel_max_seconds) return true;
    if (rounds < tuning.kernel_min_rounds) return false;
    if (rounds >= tuning.kernel_max_rounds || trial.spent_seconds > tuning.kernel_rounds_seconds)
      return true;
    return is_narrow(trial.samples, tuning);
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

ConversionCost measure_conversion(Bench& bench, const ConversionKey& key, int64_t bytes,
                                  const MeasureTuning& tuning) {
  ConversionCost cost{.bytes = bytes};
  std::vector<Sample> samples;
  double spent = 0;
  const auto run = [&](int runs) {
    const Outcome outcome = bench.convert(key, runs);
    if (!outcome.is_fine()) cost.refusal = outcome.reason;
    spent += runs * outcome.seconds;
    return sample_of(outcome);
  };
  const int runs = runs_of_round(run(1).seconds, tuning);
  while (cost.refusal.empty()) {
    samples.push_back(run(runs));
    const bool is_enough = static_cast<int>(samples.size()) >= tuning.kernel_min_rounds ||
                           spent > tuning.kernel_rounds_seconds;
    if (is_enough) break;
  }
  if (cost.refusal.empty()) cost.timing = summarise(samples);
  return cost;
}

}  // namespace tessera::tuning
