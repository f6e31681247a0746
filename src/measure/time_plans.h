// Times whole plans, and their steps.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/plan_runner.h"
#include "price/statistics.h"
#include "tessera/tensor.h"

namespace tessera {

// Called before a run, or a turn of runs, of the plan `index`, with the number of runs or turns
// done and their approximate total. Returns false to stop.
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
  double overhead_seconds = 0;  // outside of steps: entering the pool, memory of results
};

// Times the steps of a plan in context. Each time is the mean over the faster half of the runs,
// because disturbances only slow down; the sum of these means is about the lower quartile of whole
// runs. If `watcher` stops it, the runs up to then count, but at least one.
StepTimes time_steps(PlanRunner& runner, std::span<const Tensor> inputs, const RunLimits& limits,
                     const RunWatcher& watcher = {});

// Times whole runs of plans. The plans take turns, so that a disturbance affects all of them. In
// each turn, a plan runs until its weights are in the caches again. If `watcher` stops it, the runs
// up to then count. Returns nothing if not all plans have run.
std::vector<tuning::Timing> time_runs(std::span<PlanRunner* const> runners,
                                      std::span<const Tensor> inputs, const RunLimits& limits,
                                      const RunWatcher& watcher = {});

}  // namespace tessera
