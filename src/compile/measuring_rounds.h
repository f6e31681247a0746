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

#include "compile/chooser.h"
#include "compile/fit_budget.h"
#include "compile/plan_assembler.h"
#include "compile/price_offers.h"
#include "engine/built_plan.h"
#include "tune/groups.h"
#include "tune/tune.h"

namespace tessera {

// What the rounds work on. All of it outlives them.
struct TuningGround {
  BuiltPlan& base;  // graph, plug-ins, layouts, offers; what cannot be built is refused in these
  const tuning::Subject& subject;  // of `base`
  PricedOffers& prices;
  const std::optional<tuning::PlanKey>& plan_key;  // under which the fastest plan is kept
  Chooser& chooser;
  BudgetFitter& fitter;  // of `chooser`
  PlanAssembler& assembler;
};

// Owns the tuner. Between two calls the chooser has prices and leaves out what the newest call left
// out; none of them changes what it prefers.
class MeasuringRounds {
 public:
  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();

  // What is measured is added to `costs`. `effort` bounds all of it together; time runs from here
  // on. Of backends in `settled` nothing is measured: what `costs` lacks of them could not win.
  MeasuringRounds(const TuningGround& ground, tuning::TuneOptions effort, tuning::CostTable& costs,
                  const std::set<std::string>& settled);

  // Everything that was offered, and every conversion that could be needed.
  void measure_all();
  // What of `placement` was not measured.
  void measure(const Placement& placement);
  // Until what `choose` gives by bounds rests on measurements, or `most_seconds` are over. It ends
  // where that gives nothing.
  void measure_what_could_win(const std::function<Placement()>& choose,
                              double most_seconds = kNoLimit);

  // From here on only what was measured is chosen, where that is enough for every node.
  void rest_on_measurements();
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

  TuningGround ground_;
  tuning::CostTable& costs_;
  std::map<int, const tuning::TuneGroup*> group_of_;  // by candidate
  std::vector<std::string> families_;                 // by candidate
  std::vector<bool> is_settled_;   // by candidate: nothing is measured of its backend
  std::vector<bool> is_given_up_;  // by candidate: asked for once, or not to be measured at all
  std::set<tuning::ConversionCostKey> asked_;
  tuning::Tuner tuner_;
};

}  // namespace tessera
