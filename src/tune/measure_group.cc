#include "tune/measure_group.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <limits>
#include <span>
#include <utility>

namespace tessera::tuning {
namespace {

// Rounds that every candidate gets which is not far behind, and the most that any gets.
constexpr int kLeastRounds = 7;
constexpr int kMostRounds = 30;
// Rounds after which one that is so many times slower than the best one is left alone.
struct FarBehind {
  int rounds = 0;
  double times = 0;
};
constexpr std::array<FarBehind, 3> kFarBehind = {{{1, 2}, {2, 1.5}, {4, 1.2}}};
// An interval this narrow, what differs between processes aside, needs no more rounds.
constexpr double kNarrow = 0.05;
// Time for all rounds of a candidate, beyond kLeastRounds, with all that a run needs besides.
constexpr double kSecondsForRounds = 0.04;
// And for those: a slow one's interval stays wide.
constexpr double kMostSeconds = 0.2;

// Where several threads take longer than this, what they cost to start is nothing to win by one.
constexpr double kLongForOneThread = 5e-4;

// How often, and for how long, a run that was disturbed is made again.
constexpr int kMostRetries = 8;
constexpr double kSecondsForRetries = 0.03;

// Of short kernels a round is the least of several runs: what disturbs only slows.
int runs_of_round(double seconds) { return seconds < 2e-3 ? 3 : 1; }

std::string seconds_text(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g s", seconds);
  return text.data();
}

double typical(std::span<const Sample> samples) { return summarise(samples).seconds; }

// Whether more rounds would not tell much more, however free the cores were.
bool is_narrow(std::span<const Sample> samples) {
  std::vector<double> seconds;
  for (const Sample& sample : samples) seconds.push_back(sample.seconds);
  return summarise(seconds).half_width() <= kNarrow + kProcessVariation;
}

Sample sample_of(const Outcome& outcome) {
  return {outcome.seconds, outcome.slowdown, outcome.slowdown_often};
}

void keep_faster(Sample& least, const Sample& other) {
  if (other.seconds < least.seconds) least = other;
}

// Runs again where somebody else was in the way, as long as that costs little.
template <class Run>
Outcome run_undisturbed(const Run& run) {
  Outcome outcome = run();
  double spent = outcome.seconds;
  for (int again = 0; outcome.is_disturbed && again < kMostRetries; ++again) {
    if (spent > kSecondsForRetries) break;
    const Outcome next = run();
    if (!next.is_fine()) return next;
    spent += next.seconds;
    if (next.is_disturbed && next.seconds > outcome.seconds) continue;
    outcome = next;
  }
  return outcome;
}

class GroupMeasurement {
 public:
  GroupMeasurement(std::span<Trial> trials, const MeasureLimits& limits, double best_seconds,
                   const TrialWatcher& watcher)
      : trials_(trials), limits_(limits), best_(best_seconds), watcher_(watcher) {}

  bool run() {
    bool goes_on = true;
    for (Trial& trial : trials_) {
      goes_on = watcher_(trial, told_best());
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
  double told_best() const { return best_ < std::numeric_limits<double>::max() ? best_ : 0; }

  static void refuse(Trial& trial, const std::string& reason) {
    if (!trial.cost) trial.cost.emplace();
    trial.cost->refusal = reason;
    trial.is_out = true;
  }

  // Whoever measured is gone, and with it every kernel of its.
  void lose(const Bench* bench) {
    for (Trial& other : trials_) {
      if (other.bench == bench) other.is_built = false;
    }
  }

  bool build(Trial& trial) {
    Outcome built = trial.bench->build(trial.key);
    if (built.is_unknown && trial.fallback != nullptr) {
      trial.bench = std::exchange(trial.fallback, nullptr);
      built = trial.bench->build(trial.key);
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
    if (trial.bound_seconds > best_ || (trial.is_alone && best_ > kLongForOneThread)) {
      trial.is_out = true;
      return;
    }
    trial.cost.emplace();
    if (!build(trial)) return;
    const Checked checked = trial.bench->check(trial.key);
    if (checked.is_lost) lose(trial.bench);
    trial.cost->error = checked.error;
    trial.cost->tolerance = checked.tolerance;
    if (!checked.is_fine()) return refuse(trial, checked.reason);
    if (limits_.only_checks) {
      trial.is_out = true;
      return;
    }
    // Once for what is only done the first time, and once that counts.
    const std::optional<Sample> first = run_once(trial);
    if (!first) return;
    if (first->seconds > limits_.candidate_timeout_seconds) {
      return refuse(trial, "one run took " + seconds_text(first->seconds) + ", expected at most " +
                               seconds_text(limits_.candidate_timeout_seconds));
    }
    run_round(trial);
  }

  std::optional<Sample> run_once(Trial& trial) {
    const Outcome outcome =
        run_undisturbed([&] { return trial.bench->run_once(trial.key, limits_.weights); });
    if (outcome.is_fine()) return sample_of(outcome);
    if (outcome.is_lost) lose(trial.bench);
    refuse(trial, outcome.reason);
    return std::nullopt;
  }

  void run_round(Trial& trial) {
    if (!trial.is_built && !build(trial)) return;
    const auto start = std::chrono::steady_clock::now();
    std::optional<Sample> least = run_once(trial);
    if (!least) return;
    for (int run = runs_of_round(least->seconds); run > 1; --run) {
      const std::optional<Sample> again = run_once(trial);
      if (!again) return;
      keep_faster(*least, *again);
    }
    trial.samples.push_back(*least);
    trial.spent_seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best_ = std::min(best_, typical(trial.samples));
  }

  bool is_done(const Trial& trial) const {
    if (trial.is_out || trial.samples.empty()) return true;
    const auto rounds = static_cast<int>(trial.samples.size());
    const double middle = typical(trial.samples);
    for (const FarBehind& behind : kFarBehind) {
      if (rounds >= behind.rounds && middle > behind.times * best_) return true;
    }
    if (trial.spent_seconds > kMostSeconds) return true;
    if (rounds < kLeastRounds) return false;
    if (rounds >= kMostRounds || trial.spent_seconds > kSecondsForRounds) return true;
    return is_narrow(trial.samples);
  }

  // Each round runs every candidate once, beginning with another one each time.
  bool run_rounds() {
    for (size_t round = 0;; ++round) {
      bool is_busy = false;
      for (size_t index = 0; index < trials_.size(); ++index) {
        Trial& trial = trials_[(index + round) % trials_.size()];
        if (is_done(trial)) continue;
        is_busy = true;
        if (!watcher_(trial, told_best())) return false;
        run_round(trial);
        trial.is_finished = is_done(trial);
      }
      if (!is_busy) return true;
    }
  }

  void finish(Trial& trial) const {
    if (trial.is_built) trial.bench->drop(trial.key);
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
  const auto run = [&] {
    const Outcome outcome = run_undisturbed([&] { return bench.convert_once(key); });
    if (!outcome.is_fine()) cost.refusal = outcome.reason;
    spent += outcome.seconds;
    return sample_of(outcome);
  };
  run();
  while (cost.refusal.empty()) {
    Sample least = run();
    for (int again = runs_of_round(least.seconds); again > 1; --again) keep_faster(least, run());
    samples.push_back(least);
    const bool is_enough =
        static_cast<int>(samples.size()) >= kLeastRounds || spent > kSecondsForRounds;
    if (is_enough) break;
  }
  if (cost.refusal.empty()) cost.timing = summarise(samples);
  return cost;
}

}  // namespace tessera::tuning
