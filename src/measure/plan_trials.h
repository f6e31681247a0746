// Lays out, packs and runs plans of whole graphs, to find out how long they take.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "choose/choice_problem.h"
#include "engine/plan_runner.h"
#include "measure/measurement_loop.h"
#include "measure/step_recorder.h"
#include "measure/time_plans.h"
#include "place/placement.h"
#include "tessera/bind_options.h"
#include "tessera/tensor.h"

namespace tessera {

class PlanTrials {
 public:
  // All must outlive this. Without `inputs`, runs get random ones.
  PlanTrials(const TuningContext& context, tuning::Tuner& tuner, StepRecorder& recorder,
             std::vector<Tensor> inputs, bool is_short);

  // Whether runs take so little time that comparing them must not take long either.
  bool is_short() const { return is_short_; }
  // How long to run each plan, at most a quarter of the time that is left.
  RunLimits limits() const;

  // The plan of `placement`, whose kernels must be built, ready to run. `task` has the prices of
  // conversions.
  std::unique_ptr<PlanRunner> runner_of(const Placement& placement, const ChoiceTask& task);

  // Runs `runner`, the plan of `placement`, for the times of its steps; see StepRecorder.
  void record(const Placement& placement, PlanRunner& runner);

  // Races the plans. While one runs, its element of `reports` is reported, with phase and counts
  // set. Each time gets `extra_seconds` added. nullopt if it was stopped before all had run.
  std::optional<tuning::Race> race(const std::vector<PlanRunner*>& runners,
                                   const std::vector<TuneProgress>& reports,
                                   std::vector<double> extra_seconds);

 private:
  const std::vector<Tensor>& inputs();

  BuiltPlan& base_;
  int threads_;
  PlanAssembler& assembler_;
  tuning::Tuner& tuner_;
  StepRecorder& recorder_;
  std::vector<Tensor> inputs_;
  bool is_short_;
};

}  // namespace tessera
