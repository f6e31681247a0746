#include "measure/plan_trials.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/errors/check.h"
#include "base/memory/memory.h"
#include "measure/capture.h"
#include "plan/memory_use.h"
#include "tessera/error.h"

namespace tessera {

using tuning::PhaseTimer;

namespace {

// Throws OutOfMemory if the packs, outputs and arena of a plan that is only tried would leave less
// than as much for the plan that is chosen: the system ends a process rather than refuse.
void check_fits(const BuiltPlan& built) {
  MemoryUse use = memory_use(built.plan, built.offers);
  use.library_bytes = 0;  // its kernels are built
  const int64_t needed = use.total_bytes();
  if (needed < kLargeAllocationBytes) return;
  const int64_t available = available_memory_bytes();
  if (needed <= available / 2) return;
  throw Error(ErrorKind::OutOfMemory, "plans to compare",
              "expected to need at most half of the " + std::to_string(available) +
                  " bytes that are available, found a need of " + std::to_string(needed) +
                  " bytes");
}

}  // namespace

PlanTrials::PlanTrials(const TuningContext& context, tuning::Tuner& tuner, StepRecorder& recorder,
                       std::vector<Tensor> inputs, bool is_short)
    : base_(context.base),
      threads_(context.task.threads),
      assembler_(context.assembler),
      tuner_(tuner),
      recorder_(recorder),
      inputs_(std::move(inputs)),
      is_short_(is_short) {}

RunLimits PlanTrials::limits() const {
  const MeasureTuning& tuning = tuner_.tuning();
  RunLimits limits{.tuning = tuning};
  if (is_short_) limits.seconds = tuning.short_plan_seconds;
  limits.seconds = std::min(limits.seconds, tuning.plan_share_of_time_left * tuner_.seconds_left());
  return limits;
}

std::unique_ptr<PlanRunner> PlanTrials::runner_of(const Placement& placement,
                                                  const ChoiceTask& task) {
  const PhaseTimer::Scope running(tuner_.phases(), "lay out");
  tuner_.report(BindPhase::Packing);
  BuiltPlan built = assembler_.lay_out(PlanAssembler::part_of(base_, placement), placement, {},
                                       task.conversion_prices());
  check_fits(built);
  const std::optional<ReleasedWeight> released = assembler_.pack(built);
  TESSERA_CHECK(!released, "who measures has all weights");
  return std::make_unique<PlanRunner>(std::move(built), threads_);
}

void PlanTrials::record(const Placement& placement, PlanRunner& runner) {
  const PhaseTimer::Scope running(tuner_.phases(), "time steps");
  RunLimits limits = this->limits();
  limits.seconds = std::min(limits.seconds, limits.tuning.recording_seconds);
  limits.min_runs = limits.tuning.recording_min_runs;
  do {
    tuner_.begin_undisturbed();
    recorder_.record(placement, runner, inputs(), limits, [&](size_t, size_t done, size_t total) {
      return tuner_.report(BindPhase::TimingSteps, {}, done, total);
    });
  } while (tuner_.should_repeat());
}

std::optional<tuning::Race> PlanTrials::race(const std::vector<PlanRunner*>& runners,
                                             const std::vector<TuneProgress>& reports,
                                             std::vector<double> extra_seconds) {
  const PhaseTimer::Scope running(tuner_.phases(), "race");
  tuning::Race race(std::move(extra_seconds), tuner_.tuning());
  const auto report = [&](size_t index, size_t done, size_t total) {
    TuneProgress progress = reports[index];
    progress.phase = BindPhase::Comparing;
    progress.done = done;
    progress.total = total;
    return tuner_.report(std::move(progress));
  };
  const bool have_run = run_race(race, runners, inputs(), limits(), report,
                                 {.begin = [&] { tuner_.begin_undisturbed(); },
                                  .should_repeat = [&] { return tuner_.should_repeat(); }});
  return have_run ? std::optional(std::move(race)) : std::nullopt;
}

const std::vector<Tensor>& PlanTrials::inputs() {
  if (inputs_.empty()) inputs_ = tuning::draw_inputs(base_.graph, 1);
  return inputs_;
}

}  // namespace tessera
