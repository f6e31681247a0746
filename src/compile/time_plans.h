// What plans take as a whole, and each of their steps.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "engine/plan_runner.h"
#include "tessera/tensor.h"
#include "tune/statistics.h"

namespace tessera {

// How long to run each plan: at least a few times, then until the time is spent.
struct RunLimits {
  double seconds = 0.25;  // for each plan
  int least_runs = 6;
  int most_runs = 60;
};

struct StepTimes {
  // By step of the plan; nullopt for those that do not run.
  std::vector<std::optional<tuning::Timing>> steps;
  double around_seconds = 0;  // what a run takes besides: entering the pool, memory of the results
};

// What steps take amid the others, each on average over the faster half of the runs, as whatever
// else the machine does only slows: together that is the lower quartile of whole runs, near enough.
StepTimes time_steps(PlanRunner& runner, std::span<const Tensor> inputs, const RunLimits& limits);

// What a run of each takes. They take turns, so that whatever else the machine does meets all of
// them; in each turn a plan runs until its own weights are back in the caches.
std::vector<tuning::Timing> time_runs(std::span<PlanRunner* const> runners,
                                      std::span<const Tensor> inputs, const RunLimits& limits);

}  // namespace tessera
