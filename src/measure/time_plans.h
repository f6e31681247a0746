// What plans take as a whole, and each of their steps.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/plan_runner.h"
#include "price/statistics.h"
#include "tessera/tensor.h"

namespace tessera {

// Told before a run, or a turn of runs, of the plan `index`: how many were made, and of how many
// about. Gives false to stop.
using RunWatcher = std::function<bool(size_t index, size_t done, size_t total)>;

// How long to run each plan: at least a few times, then until the time is spent.
struct RunLimits {
  double seconds = 0.25;  // for each plan
  int min_runs = 6;
  int max_runs = 60;
};

struct StepTimes {
  // By step of the plan; nullopt for those that do not run.
  std::vector<std::optional<tuning::Timing>> steps;
  double overhead_seconds =
      0;  // what a run takes besides: entering the pool, memory of the results
};

// What steps take amid the others, each on average over the faster half of the runs, as whatever
// else the machine does only slows: together that is the lower quartile of whole runs, near enough.
// Where `watcher` stops it, what was run by then counts, once at least.
StepTimes time_steps(PlanRunner& runner, std::span<const Tensor> inputs, const RunLimits& limits,
                     const RunWatcher& watcher = {});

// What a run of each takes. They take turns, so that whatever else the machine does meets all of
// them; in each turn a plan runs until its own weights are back in the caches. Where `watcher`
// stops it, what was run by then counts; nothing is given where not all have run.
std::vector<tuning::Timing> time_runs(std::span<PlanRunner* const> runners,
                                      std::span<const Tensor> inputs, const RunLimits& limits,
                                      const RunWatcher& watcher = {});

}  // namespace tessera
