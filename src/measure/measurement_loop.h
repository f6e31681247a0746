// Rounds of choosing by what is known and measuring what the choice lacks.
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

// What the rounds work on. All of it outlives them.
struct TuningContext {
  BuiltPlan& base;  // graph, plug-ins, layouts, offers; what cannot be built is refused in these
  const tuning::Subject& subject;  // of `base`
  PricedOffers& prices;
  const std::optional<tuning::PlanKey>& plan_key;  // under which the fastest plan is kept
  Placer& placer;
  BudgetFitter& fitter;  // of `placer`
  PlanAssembler& assembler;
};

// Owns the tuner. Between two calls the placer has prices and leaves out what the newest call left
// out; none of them changes what it prefers.
class MeasurementLoop {
 public:
  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();

  // What is measured is added to `costs`. `effort` bounds all of it together; time runs from here
  // on. Of backends in `fully_measured` nothing is measured: what `costs` lacks of them could not
  // win.
  MeasurementLoop(const TuningContext& context, tuning::TuneOptions effort,
                  tuning::CostTable& costs, const std::set<std::string>& fully_measured);

  // Everything that was offered, and every conversion that could be needed.
  void measure_all();
  // What of `placement` was not measured.
  void measure(const Placement& placement);
  // Until what `choose` gives by bounds rests on measurements, or `max_seconds` are over. It ends
  // where that gives nothing.
  void measure_potential_winners(const std::function<Placement()>& choose,
                                 double max_seconds = kNoLimit);

  // From here on only what was measured is chosen, where that is enough for every node.
  void restrict_to_measured();
  // The cheapest by that, which fits into memory, with its kernels built.
  Placement choose_buildable();
  // As PlanAssembler has it.
  std::vector<int> build(const Placement& placement);

  // Whether nothing of it could be measured and was not: all that it runs is known to be right.
  bool is_measured(const Placement& placement) const;

  tuning::Tuner& tuner() { return tuner_; }
  const tuning::Tuner& tuner() const { return tuner_; }

 private:
  bool is_unmeasured(int candidate) const;
  bool is_unknown(int candidate) const;
  std::vector<int> unknown_candidates(const Placement& placement) const;
  std::vector<tuning::NeededConversion> unknown_conversions() const;

  TuningContext context_;
  tuning::CostTable& costs_;
  std::map<int, const tuning::TuneGroup*> group_of_;  // by candidate
  std::vector<std::string> families_;                 // by candidate
  std::vector<bool> is_fully_measured_;  // by candidate: nothing is measured of its backend
  std::vector<bool> is_given_up_;  // by candidate: asked for once, or not to be measured at all
  std::set<tuning::ConversionCostKey> asked_;
  tuning::Tuner tuner_;
};

}  // namespace tessera
