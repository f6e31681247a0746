// Times whole plans, and their steps.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/plan_runner.h"
#include "measure/measure_tuning.h"
#include "measure/race.h"
#include "price/statistics.h"
#include "tessera/tensor.h"

namespace tessera {

// Called before a run, or a turn of runs, of the plan `index`, with the number of runs or turns
// done and their approximate total. Returns false to stop.
using RunWatcher = std::function<bool(size_t index, size_t done, size_t total)>;

// How long to run each plan: at least a few times, then until the time is spent.
struct RunLimits {
  MeasureTuning tuning = {};             // for the lengths of turns, and as defaults
  double seconds = tuning.plan_seconds;  // for each plan
  int min_runs = tuning.plan_min_runs;
  int max_runs = tuning.plan_max_runs;
};

// Around a round of a race: begin() before it, should_repeat() after it. The latter tells whether
// the round does not count, because other processes disturbed it.
struct RoundGuard {
  std::function<void()> begin = [] {};
  std::function<bool()> should_repeat = [] { return false; };
};

struct StepTimes {
  // By step of the plan; nullopt for those that do not run.
  std::vector<std::optional<tuning::Timing>> steps;
  double overhead_seconds = 0;  // outside of steps: entering the pool, memory of results
};

// Times the steps of a plan in context. Each time is the mean over the faster half of the runs,
// because disturbances only slow down; the sum of these means is about the lower quartile of whole
// runs. If `watcher` stops it, the runs up to then count, but at least one.
StepTimes time_steps(PlanRunner& runner, std::span<const Tensor> inputs, const RunLimits& limits,
                     const RunWatcher& watcher = {});

// Runs a race of plans, by contender, in rounds. In each round every plan that still takes part has
// a turn, in random order; a turn is long enough to load its weights into the caches again and to
// run some times, of which the median counts, as users see it. After a few rounds, the race ends
// when it is decided, or when `limits.seconds` for each plan are over. Returns false if `watcher`
// stopped it before the first round was complete; the rounds up to then count.
bool run_race(tuning::Race& race, std::span<PlanRunner* const> runners,
              std::span<const Tensor> inputs, const RunLimits& limits,
              const RunWatcher& watcher = {}, const RoundGuard& guard = {});

}  // namespace tessera
