#include "measure/time_plans.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <random>

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

int min_runs(const RunLimits& limits, double seconds) {
  const bool is_very_long = seconds > limits.tuning.very_long_plan_seconds;
  return is_very_long ? std::min(limits.tuning.very_long_plan_runs, limits.min_runs)
                      : limits.min_runs;
}

// The approximate number of runs if one takes `seconds`.
size_t expected_runs(const RunLimits& limits, double seconds, double max_seconds) {
  const double wanted = std::ceil(max_seconds / std::max(seconds, 1e-9));
  const auto most = static_cast<double>(limits.max_runs);
  return static_cast<size_t>(std::max<double>(min_runs(limits, seconds), std::min(wanted, most)));
}

struct TimedRun {
  double seconds = 0;  // of the whole run
  std::vector<std::optional<double>> steps;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double run_once(PlanRunner& runner, std::span<const Tensor> inputs) {
  const auto start = Clock::now();
  runner.run(inputs);
  return seconds_since(start);
}

double run_turn(PlanRunner& runner, std::span<const Tensor> inputs, const MeasureTuning& tuning) {
  const double first = run_once(runner, inputs);
  if (first > tuning.turn_of_one_run_seconds) return first;
  if (first > tuning.turn_of_one_timed_run_seconds) return run_once(runner, inputs);
  std::vector<double> runs;
  double spent = 0;
  while (runs.size() < tuning.turn_min_runs ||
         (spent < tuning.turn_seconds && runs.size() < tuning.turn_max_runs)) {
    runs.push_back(run_once(runner, inputs));
    spent += runs.back();
  }
  const auto middle = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
  std::ranges::nth_element(runs, middle);
  return *middle;
}

// The mean, with the interval of summarise().
tuning::Timing on_average(std::span<const double> samples) {
  tuning::Timing timing = tuning::summarise(samples);
  timing.seconds =
      std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
  timing.low = std::min(timing.low, timing.seconds);
  timing.high = std::max(timing.high, timing.seconds);
  return timing;
}

// From the fastest half of the runs.
StepTimes summary_of(std::vector<TimedRun> runs, size_t step_count, const MeasureTuning& tuning) {
  std::sort(runs.begin(), runs.end(), [](const TimedRun& left, const TimedRun& right) {
    return left.seconds < right.seconds;
  });
  runs.resize(std::min(runs.size(), std::max(tuning.recording_min_fast_runs, runs.size() / 2)));
  StepTimes times{.steps = std::vector<std::optional<tuning::Timing>>(step_count)};
  for (const TimedRun& run : runs) times.overhead_seconds += run.seconds;
  times.overhead_seconds /= static_cast<double>(runs.size());
  for (size_t step = 0; step < step_count; ++step) {
    std::vector<double> samples;
    for (const TimedRun& run : runs) {
      if (run.steps[step]) samples.push_back(*run.steps[step]);
    }
    if (samples.empty()) continue;
    times.steps[step] = on_average(samples);
    times.overhead_seconds -= times.steps[step]->seconds;
  }
  times.overhead_seconds = std::max(times.overhead_seconds, 0.0);
  return times;
}

double race_seconds(const RunLimits& limits, size_t contenders) {
  // Most contenders drop out early.
  return limits.seconds *
         static_cast<double>(std::min(contenders, limits.tuning.race_fully_timed_plans));
}

bool is_race_over(const tuning::Race& race, const RunLimits& limits, bool are_very_long,
                  bool is_time_over) {
  const auto rounds = static_cast<int>(race.rounds());
  if (rounds == 0) return false;
  if (rounds >= limits.max_runs) return true;
  return rounds >=
             (are_very_long ? limits.tuning.very_long_plan_runs : limits.tuning.race_min_rounds) &&
         (race.is_decided() || is_time_over);
}

}  // namespace

StepTimes time_steps(PlanRunner& runner, std::span<const Tensor> inputs, const RunLimits& limits,
                     const RunWatcher& watcher) {
  const size_t step_count = runner.built().plan.steps.size();
  std::vector<TimedRun> runs;
  const auto start = Clock::now();
  if (watcher) watcher(0, 0, static_cast<size_t>(limits.min_runs));
  runner.run(inputs);
  for (int run = 0; run < limits.max_runs; ++run) {
    if (!runs.empty() && watcher) {
      const size_t total = expected_runs(limits, runs[0].seconds, limits.seconds);
      if (!watcher(0, std::min(runs.size(), total - 1), total)) break;
    }
    if (!runs.empty() && run >= min_runs(limits, runs[0].seconds) &&
        seconds_since(start) > limits.seconds)
      break;
    TimedRun& timed = runs.emplace_back();
    timed.steps.resize(step_count);
    const auto run_start = Clock::now();
    runner.run(inputs, [&](const PlanEvent& event) {
      timed.steps[event.step] = std::chrono::duration<double>(event.duration).count();
    });
    timed.seconds = seconds_since(run_start);
  }
  return summary_of(std::move(runs), step_count, limits.tuning);
}

bool run_race(tuning::Race& race, std::span<PlanRunner* const> runners,
              std::span<const Tensor> inputs, const RunLimits& limits, const RunWatcher& watcher,
              const RoundGuard& guard) {
  // The order is the same in every process; it must only not favour a contender.
  std::minstd_rand random(1);
  const double seconds = race_seconds(limits, runners.size());
  size_t done = 0;
  size_t total = runners.size() * static_cast<size_t>(limits.min_runs);
  double spent = 0;  // for the rounds that count
  double round_seconds = 0;
  const double very_long_seconds =
      limits.tuning.very_long_plan_seconds * static_cast<double>(runners.size());
  while (!is_race_over(race, limits, round_seconds > very_long_seconds, spent > seconds)) {
    const std::vector<size_t> running = race.running();
    std::vector<size_t> order(running.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::shuffle(order, random);
    std::vector<double> turns(running.size());
    guard.begin();
    const auto start = Clock::now();
    for (const size_t position : order) {
      if (watcher && !watcher(running[position], std::min(done, total - 1), total)) {
        return race.rounds() > 0;
      }
      turns[position] = run_turn(*runners[running[position]], inputs, limits.tuning);
      ++done;
    }
    const double taken = seconds_since(start);
    if (guard.should_repeat()) continue;
    race.add_round(turns);
    spent += taken;
    // Assumes that all rounds take as long as the first. Plans that drop out make them shorter.
    if (race.rounds() == 1) {
      round_seconds = taken;
      total = runners.size() * expected_runs(limits, round_seconds, seconds);
    }
  }
  return true;
}

}  // namespace tessera
