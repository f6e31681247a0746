#include "measure/step_recorder.h"

#include <algorithm>
#include <map>
#include <optional>

namespace tessera {
namespace {

using tuning::Timing;

Timing mean(const std::vector<Timing>& timings) {
  Timing sum;
  const auto part = 1 / static_cast<double>(timings.size());
  for (const Timing& timing : timings) {
    sum.seconds += part * timing.seconds;
    sum.low += part * timing.low;
    sum.high += part * timing.high;
    sum.rounds = std::max(sum.rounds, timing.rounds);
  }
  return sum;
}

}  // namespace

void StepRecorder::record(const Placement& placement, PlanRunner& runner,
                          std::span<const Tensor> inputs, const RunLimits& limits,
                          const RunWatcher& watcher) {
  const StepTimes times = time_steps(runner, inputs, limits, watcher);
  overhead_seconds_ = seconds_ = times.overhead_seconds;
  std::map<tuning::CostKey, std::vector<Timing>> by_key;
  const ExecutionPlan& plan = runner.built().plan;
  for (size_t index = 0; index < times.steps.size(); ++index) {
    const std::optional<Timing>& timing = times.steps[index];
    if (!timing) continue;
    seconds_ += timing->seconds;
    const ExecutionStep& step = plan.steps[index];
    // A watched run waits after each step of a device, which a bulk does not.
    if (step.kind != ExecutionStep::Kind::Kernel || step.device != kHostDevice) continue;
    const auto& key = prices_.keys()[static_cast<size_t>(step.candidate)];
    if (key) by_key[*key].push_back(*timing);
  }
  for (const auto& [key, several] : by_key) {
    const auto found = costs_.kernels.find(key);
    if (found != costs_.kernels.end()) found->second.in_context = mean(several);
  }
  recorded_.insert(placement.chosen);
  newest_ = placement.chosen;
}

}  // namespace tessera
