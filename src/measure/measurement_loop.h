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
#include "choose/fit_budget.h"
#include "choose/placer.h"
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
  Placer& placer;
  BudgetFitter& fitter;  // of `placer`
  PlanAssembler& assembler;
};

// Owns the tuner. Between calls the placer has prices and excludes the candidates that the newest
// call excluded. No call changes the preferred placement.
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
  // is empty.
  void measure_potential_winners(const std::function<Placement()>& choose,
                                 double max_seconds = kNoLimit);

  // Excludes unmeasured candidates, except those of `allowed`, from later choices if the others can
  // compute every node. If not, those of the choice without prices are allowed too, or else all.
  void restrict_to_measured(const Placement& allowed = {});
  // Calls restrict_to_measured() and returns the cheapest placement that fits into the memory
  // budget, with its kernels built.
  Placement choose_buildable();
  // Builds the kernels of `placement`. Returns the candidates that cannot be built.
  std::vector<int> build(const Placement& placement);

  // Whether all candidates of `placement` that can be measured were measured, so that the results
  // of its kernels are known to be right; apart from the candidates of `exempt`.
  bool is_measured(const Placement& placement, const Placement& exempt = {}) const;

  tuning::Tuner& tuner() { return tuner_; }
  const tuning::Tuner& tuner() const { return tuner_; }

 private:
  bool can_gain_little(const Placement& placement, const std::function<Placement()>& choose);
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
  tuning::Tuner tuner_;
};

}  // namespace tessera
