// Alternates between choosing by known prices and measuring the unmeasured candidates of the
// choice.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "assemble/plan_assembler.h"
#include "choose/choice.h"
#include "choose/choice_problem.h"
#include "choose/fit_budget.h"
#include "choose/price_offers.h"
#include "engine/built_plan.h"
#include "measure/tune.h"
#include "price/groups.h"

namespace tessera {

// The objects that tuning works on. All must outlive the MeasurementLoop.
struct TuningContext {
  BuiltPlan& base;                 // graph, plug-ins, layouts, offers; refusals are added to these
  const tuning::TuningTask& task;  // of `base`
  PricedOffers& prices;
  const std::optional<tuning::PlanKey>& plan_key;  // key of the fastest plan
  const ChoiceProblem& problem;                    // made from `base`
  const Placement& known;                          // the fastest so far; may be empty
  BudgetFitter& fitter;                            // of `problem`
  PlanAssembler& assembler;
};

// A task with its solution.
struct SolvedTask {
  ChoiceTask task;
  ChoiceSolution solution = {};
};

// A placement that was chosen for a task, with its kernels built.
struct BuiltChoice {
  ChoiceTask task;
  Placement placement;
};

using ChooseForTask = std::function<Choice(const ChoiceTask& task)>;

// Owns the tuner. Every call makes tasks of its own, with the newest prices. Which candidates they
// exclude is decided here, so `excluded` of the constraints that are passed is not used.
class MeasurementLoop {
 public:
  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();

  // Measurements are added to `costs`. `effort` limits all calls together; its time starts here.
  // Backends in `fully_measured` are not measured: candidates of them that `costs` lacks could not
  // win.
  MeasurementLoop(const TuningContext& context, tuning::TuneOptions effort,
                  tuning::CostTable& costs, const std::set<std::string>& fully_measured);

  // Measures all candidates, and every conversion that could be needed.
  void measure_all();
  // Measures the unmeasured candidates of `placement`, also those that cannot win.
  void measure(const Placement& placement);
  // Calls `choose` with bounds as prices and measures the candidates of the result, until all are
  // measured, a choice among measured ones is hardly dearer, `max_seconds` are over, or the result
  // is empty. Also measures the conversions of the newest solution: that of the result, or if it
  // has none, the solution before.
  void measure_potential_winners(Constraints constraints, const ChooseForTask& choose,
                                 double max_seconds = kNoLimit);

  // Returns a task with guesses as prices of unmeasured candidates. It excludes these, except those
  // of `allowed`, if the others can compute every node. If not, those of the choice without prices
  // are allowed too, or else all.
  SolvedTask restrict_to_measured(Constraints constraints, const Placement& allowed = {});
  // Calls restrict_to_measured() and returns the cheapest placement that fits into the memory
  // budget, or `preferred` if choose() prefers it. Adds candidates that cannot be built or do not
  // fit to `constraints`, also if this throws.
  BuiltChoice choose_buildable(Constraints& constraints, const Placement& preferred);
  // Builds the kernels of `placement`. Returns the candidates that cannot be built.
  std::vector<int> build(const Placement& placement);

  // Whether all candidates of `placement` that can be measured were measured, so that the results
  // of its kernels are known to be right; apart from the candidates of `exempt`.
  bool is_measured(const Placement& placement, const Placement& exempt = {}) const;

  tuning::Tuner& tuner() { return tuner_; }
  const tuning::Tuner& tuner() const { return tuner_; }

 private:
  SolvedTask solved(ChoiceTask task);
  bool can_gain_little(const ChoiceTask& task, const Placement& placement,
                       const ChooseForTask& choose) const;
  bool is_unmeasured(int candidate) const;
  bool is_pending(int candidate) const;
  // Of two candidates for the same nodes.
  bool differs_in_dense_layout(int left, int right) const;
  std::vector<int> unknown_candidates(const Placement& placement, size_t groups_of_family) const;
  std::vector<tuning::NeededConversion> unknown_conversions() const;

  TuningContext context_;
  tuning::CostTable& costs_;
  std::map<int, const tuning::TuneGroup*> group_of_;  // by candidate
  std::vector<std::string> families_;                 // by candidate
  std::vector<bool> is_fully_measured_;               // by candidate: its backend is not measured
  std::vector<bool> is_given_up_;  // by candidate: requested before, or never measured
  std::set<tuning::ConversionCostKey> requested_conversions_;
  std::vector<PlacementConversion> newest_conversions_;  // of the newest solution
  tuning::Tuner tuner_;
};

}  // namespace tessera
