// Compares the times of whole plans, and takes the fastest.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "choose/choice_problem.h"
#include "engine/plan_runner.h"
#include "measure/measurement_loop.h"
#include "measure/plan_trials.h"
#include "measure/step_recorder.h"
#include "place/placement.h"
#include "price/statistics.h"
#include "tessera/descriptions.h"

namespace tessera {

// A plan that was run against others.
struct Contender {
  ContenderDescription description;  // without times
  Placement placement;
  std::optional<int> alone;  // the preference of its backend, if it is of one backend alone
  std::unique_ptr<PlanRunner> runner;
  tuning::Timing timing;
  bool is_in_order = false;  // the choice without prices, perhaps under another name
};

class RunOff {
 public:
  // The references must outlive this. `task` has the newest prices. Its constraints hold for all
  // choices, but `loop` decides which candidates are excluded.
  RunOff(const TuningContext& context, ChoiceTask task, MeasurementLoop& loop, PlanTrials& trials,
         StepRecorder& recorder);

  // Races the placement that is cheapest by price, `best`, against the one that was the fastest
  // before, `known` (may be empty), other choices by price, the choice without prices, and the plan
  // of each backend alone. Returns the fastest first (of equally fast ones, the first in this
  // order), then the others by time. Empty if it was stopped before all had run.
  std::vector<Contender> run(const Placement& best, const Placement& known);

 private:
  void add(ContenderDescription description, Placement placement, std::optional<int> alone = {});
  void add_choices(const Placement& best, const Placement& known);
  Placement measured_in_order();
  void restrict_to_measured();
  void add_backends_alone();
  Placement if_promising(const ChoiceTask& task, Placement placement, double max_ratio) const;
  bool add_in_context_choices(int round, double max_seconds);
  bool race(std::span<Contender* const> racing);
  bool race_against_winner(size_t known_count);
  void compare_finalists();
  void record_winner();
  double price_of(const Contender& contender) const;
  std::vector<Contender*> finalists();

  BuiltPlan& base_;
  BudgetFitter& fitter_;
  SolvedTask newest_;        // with the newest prices
  Constraints constraints_;  // of every task, without what it excludes
  MeasurementLoop& loop_;
  tuning::Tuner& tuner_;
  PlanTrials& trials_;
  StepRecorder& recorder_;
  std::vector<Contender> all_;
  // Its kernels may be run although they were not checked. Empty while there is time to check them.
  Placement unchecked_;
  size_t winner_ = 0;  // index in all_; valid after a race
};

}  // namespace tessera
