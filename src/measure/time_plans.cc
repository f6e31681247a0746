#include "measure/time_plans.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

// Runs of a turn: the first loads the caches, and the minimum counts.
constexpr int kRunsOfTurn = 3;
// A run that takes longer than this must load most of its weights each time, so it is a turn by
// itself.
constexpr double kLongSeconds = 0.02;
// Plans that take longer than this run only as often as is necessary to notice disturbances.
constexpr double kVeryLongSeconds = 0.05;
constexpr int kRunsOfVeryLong = 5;
// After this number of turns, plans that are slower than the fastest by this factor are skipped.
constexpr size_t kMinTurnsToSkip = 3;
constexpr double kFarBehind = 1.06;

// At least this many runs count, if that many were made.
constexpr size_t kMinFastRuns = 3;

int min_runs(const RunLimits& limits, double seconds) {
  return seconds > kVeryLongSeconds ? kRunsOfVeryLong : limits.min_runs;
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

double run_turn(PlanRunner& runner, std::span<const Tensor> inputs) {
  const double first = run_once(runner, inputs);
  if (first > kLongSeconds) return first;
  double least = first;
  for (int run = 1; run < kRunsOfTurn; ++run) least = std::min(least, run_once(runner, inputs));
  return least;
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

// By plan: whether it can no longer win.
std::vector<bool> find_outpaced(const std::vector<std::vector<double>>& samples) {
  std::vector<double> times;
  for (const std::vector<double>& sample : samples) {
    times.push_back(tuning::summarise(sample).seconds);
  }
  const double least = *std::min_element(times.begin(), times.end());
  std::vector<bool> is_hopeless;
  for (size_t index = 0; index < samples.size(); ++index) {
    is_hopeless.push_back(samples[index].size() >= kMinTurnsToSkip &&
                          times[index] > kFarBehind * least);
  }
  return is_hopeless;
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
  std::sort(runs.begin(), runs.end(), [](const TimedRun& left, const TimedRun& right) {
    return left.seconds < right.seconds;
  });
  runs.resize(std::min(runs.size(), std::max(kMinFastRuns, runs.size() / 2)));
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

std::vector<tuning::Timing> time_runs(std::span<PlanRunner* const> runners,
                                      std::span<const Tensor> inputs, const RunLimits& limits,
                                      const RunWatcher& watcher) {
  std::vector<std::vector<double>> samples(runners.size());
  std::vector<bool> is_hopeless(runners.size(), false);
  const auto start = Clock::now();
  const double seconds = limits.seconds * static_cast<double>(runners.size());
  size_t done = 0;
  size_t total = runners.size() * static_cast<size_t>(limits.min_runs);
  bool is_stopped = false;
  for (int turn = 0; turn < limits.max_runs; ++turn) {
    if (turn > 0 && turn >= min_runs(limits, samples[0][0]) && seconds_since(start) > seconds)
      break;
    for (size_t position = 0; position < runners.size(); ++position) {
      const size_t index = (position + static_cast<size_t>(turn)) % runners.size();
      if (is_hopeless[index]) continue;
      is_stopped = watcher && !watcher(index, std::min(done, total - 1), total);
      if (is_stopped) break;
      samples[index].push_back(run_turn(*runners[index], inputs));
      ++done;
    }
    if (is_stopped) break;
    is_hopeless = find_outpaced(tuning::remove_block_effects(samples));
    // Assumes that all turns take as long as the first. Plans that are skipped later make them
    // shorter.
    if (turn == 0) {
      total = runners.size() * expected_runs(limits, seconds_since(start), seconds);
    }
  }
  const auto has_not_run = [](const std::vector<double>& sample) { return sample.empty(); };
  if (std::ranges::any_of(samples, has_not_run)) return {};
  std::vector<tuning::Timing> timings;
  for (const std::vector<double>& sample : tuning::remove_block_effects(samples)) {
    timings.push_back(tuning::summarise(sample));
  }
  return timings;
}

}  // namespace tessera
