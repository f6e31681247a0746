#include "compile/measuring_rounds.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/stopwatch.h"

namespace tessera {
namespace {

using tuning::NeededConversion;
using tuning::Phases;

// Candidates for the same nodes within this of the chosen one's bound are measured beside it.
constexpr double kRivals = 1.05;

}  // namespace

MeasuringRounds::MeasuringRounds(const TuningGround& ground, tuning::TuneOptions effort,
                                 tuning::CostTable& costs, const std::set<std::string>& settled)
    : ground_(ground),
      costs_(costs),
      families_(tuning::candidate_families(ground.subject, ground.prices.groups())),
      is_settled_(ground.subject.offers.candidates.size(), false),
      is_given_up_(ground.subject.offers.candidates.size(), false),
      tuner_(ground.subject, ground.prices.groups(), ground.prices.keys(), ground.base.plugins,
             std::move(effort), costs) {
  for (const tuning::TuneGroup& group : ground.prices.groups()) {
    for (const int index : group.candidates) group_of_[index] = &group;
  }
  for (size_t index = 0; index < is_given_up_.size(); ++index) {
    const Candidate& candidate = ground.subject.offers.candidates[index];
    is_settled_[index] = settled.contains(candidate.backend());
    // What cannot be measured alone keeps its guess; views take nothing.
    if (!ground.prices.keys()[index] || !candidate.has_kernel() || is_settled_[index]) {
      is_given_up_[index] = true;
    }
  }
}

void MeasuringRounds::measure_all() {
  std::vector<int> all(ground_.subject.offers.candidates.size());
  std::iota(all.begin(), all.end(), 0);
  tuner_.measure(all, tuning::needed_conversions(ground_.subject));
}

void MeasuringRounds::measure(const Placement& placement) {
  std::vector<int> unknown;
  for (const int index : placement.chosen) {
    if (is_unmeasured(index) && !is_settled_[static_cast<size_t>(index)]) unknown.push_back(index);
  }
  tuner_.measure(unknown, {});
}

void MeasuringRounds::measure_what_could_win(const std::function<Placement()>& choose,
                                             double most_seconds) {
  const Stopwatch stopwatch;
  while (tuner_.may_go_on() && stopwatch.read().seconds < most_seconds) {
    const Phases::Running running(tuner_.phases(), "choose");
    if (!tuner_.tell(BindPhase::Choosing)) return;
    ground_.prices.look_up_bounds(is_given_up_);
    ground_.chooser.set_prices(ground_.prices);
    ground_.chooser.leave_out({});
    const Placement placement = choose();
    if (placement.chosen.empty()) return;
    const std::vector<int> candidates = unknown_candidates(placement);
    const std::vector<NeededConversion> conversions = unknown_conversions();
    if (candidates.empty() && conversions.empty()) return;
    tuner_.measure(candidates, conversions, most_seconds - stopwatch.read().seconds);
    // Whatever came of it, nobody asks again.
    for (const int index : candidates) is_given_up_[static_cast<size_t>(index)] = true;
    for (const NeededConversion& conversion : conversions) asked_.insert(conversion.cost_key);
  }
}

void MeasuringRounds::rest_on_measurements() {
  tuner_.tell(BindPhase::Choosing);
  ground_.prices.look_up_guesses();
  Chooser& chooser = ground_.chooser;
  chooser.set_prices(ground_.prices);
  std::vector<bool> is_unknown(ground_.subject.offers.candidates.size(), false);
  for (size_t index = 0; index < is_unknown.size(); ++index) {
    is_unknown[index] = is_unmeasured(static_cast<int>(index));
  }
  chooser.leave_out(is_unknown);
  if (!chooser.solve().chosen.empty()) return;
  // Time was over before every node had a candidate that was measured. Those that none covers are
  // computed as they would be without prices.
  chooser.leave_out({});
  const Placement in_order = chooser.in_order();
  for (const int index : in_order.chosen) is_unknown[static_cast<size_t>(index)] = false;
  chooser.leave_out(std::move(is_unknown));
  if (!chooser.solve().chosen.empty()) return;
  chooser.leave_out({});
  chooser.solve();  // for the bound that the choice is described by
}

Placement MeasuringRounds::choose_buildable() {
  const Phases::Running running(tuner_.phases(), "choose");
  Chooser& chooser = ground_.chooser;
  rest_on_measurements();
  while (true) {
    Placement placement = choose_covering(chooser, ground_.base.offers, ground_.base.graph);
    if (ground_.fitter.makes_way(placement, chooser)) {
      // What takes its place may not have been worth measuring before.
      measure_what_could_win([&] { return chooser.solve(); });
      rest_on_measurements();
      continue;
    }
    const std::vector<int> failed = build(placement);
    if (failed.empty()) return placement;
    for (const int index : failed) chooser.forbid(index);
    ground_.fitter.start(chooser);
  }
}

std::vector<int> MeasuringRounds::build(const Placement& placement) {
  const Phases::Running running(tuner_.phases(), "build plans");
  return ground_.assembler.build(placement, ground_.base, [&](size_t done, size_t total) {
    tuner_.tell(BindPhase::Building, {}, done, total);
  });
}

bool MeasuringRounds::is_measured(const Placement& placement) const {
  return std::none_of(placement.chosen.begin(), placement.chosen.end(),
                      [&](int index) { return is_unmeasured(index); });
}

// Though it can be measured.
bool MeasuringRounds::is_unmeasured(int candidate) const {
  const auto at = static_cast<size_t>(candidate);
  const bool can_be =
      ground_.prices.keys()[at] && ground_.subject.offers.candidates[at].has_kernel();
  return can_be && !ground_.prices.is_measured(candidate);
}

bool MeasuringRounds::is_unknown(int candidate) const {
  return !is_given_up_[static_cast<size_t>(candidate)] && !ground_.prices.is_measured(candidate);
}

// Of the placement, and for the same nodes those that promise as much: they are measured side by
// side. Of each family those of one group: what they teach may leave out the others.
std::vector<int> MeasuringRounds::unknown_candidates(const Placement& placement) const {
  const PricedOffers& prices = ground_.prices;
  std::vector<int> unknown;
  std::map<std::string_view, const tuning::TuneGroup*> taken;
  for (const int chosen : placement.chosen) {
    if (!is_unknown(chosen)) continue;
    const tuning::TuneGroup* group = group_of_.at(chosen);
    for (const int rival : group->candidates) {
      if (!is_unknown(rival)) continue;
      if (prices.seconds(rival) > kRivals * prices.seconds(chosen)) continue;
      const std::string_view family = families_[static_cast<size_t>(rival)];
      if (taken.try_emplace(family, group).first->second == group) unknown.push_back(rival);
    }
  }
  return unknown;
}

std::vector<NeededConversion> MeasuringRounds::unknown_conversions() const {
  std::vector<NeededConversion> unknown;
  std::set<tuning::ConversionCostKey> seen = asked_;
  for (const PlacementConversion& made : ground_.chooser.solution().conversions) {
    for (NeededConversion& step : tuning::conversions_between(
             ground_.subject, ValueId{made.value}, LayoutId{made.from}, LayoutId{made.to})) {
      const bool is_known = costs_.conversions.contains(step.cost_key);
      if (!is_known && seen.insert(step.cost_key).second) unknown.push_back(std::move(step));
    }
  }
  return unknown;
}

}  // namespace tessera
