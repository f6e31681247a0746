#include "measure/measurement_loop.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/errors/check.h"
#include "base/threads/stopwatch.h"

namespace tessera {
namespace {

using tuning::NeededConversion;
using tuning::PhaseTimer;

}  // namespace

MeasurementLoop::MeasurementLoop(const TuningContext& context, tuning::TuneOptions effort,
                                 tuning::CostTable& costs,
                                 const std::set<std::string>& fully_measured)
    : context_(context),
      costs_(costs),
      families_(tuning::candidate_families(context.task, context.prices.groups())),
      is_fully_measured_(context.task.offers.candidates.size(), false),
      is_given_up_(context.task.offers.candidates.size(), false),
      tuner_(context.task, context.prices.groups(), context.prices.keys(), context.base.plugins,
             std::move(effort), costs) {
  for (const tuning::TuneGroup& group : context.prices.groups()) {
    for (const int index : group.candidates) group_of_[index] = &group;
  }
  for (size_t index = 0; index < is_given_up_.size(); ++index) {
    const Candidate& candidate = context.task.offers.candidates[index];
    is_fully_measured_[index] = fully_measured.contains(candidate.backend());
    // Candidates that cannot be measured alone keep their guess; views take no time.
    if (!context.prices.keys()[index] || !candidate.has_kernel() || is_fully_measured_[index]) {
      is_given_up_[index] = true;
    }
  }
}

void MeasurementLoop::measure_all() {
  std::vector<int> all(context_.task.offers.candidates.size());
  std::iota(all.begin(), all.end(), 0);
  tuner_.measure(all, tuning::needed_conversions(context_.task));
}

void MeasurementLoop::measure(const Placement& placement) {
  std::vector<int> unknown;
  for (const int index : placement.chosen) {
    if (is_unmeasured(index) && !is_fully_measured_[static_cast<size_t>(index)])
      unknown.push_back(index);
  }
  tuner_.measure_even_hopeless(unknown);
}

void MeasurementLoop::measure_potential_winners(Constraints constraints,
                                                const ChooseForTask& choose, double max_seconds) {
  const Stopwatch stopwatch;
  constraints.excluded.clear();
  double groups_of_family = 1;
  while (tuner_.should_continue() && stopwatch.read().seconds < max_seconds) {
    const PhaseTimer::Scope running(tuner_.phases(), "choose");
    if (!tuner_.report(BindPhase::Choosing)) return;
    context_.prices.look_up_bounds(is_given_up_);
    const ChoiceTask task(context_.problem, context_.prices.choice_prices(), constraints);
    const Choice choice = choose(task);
    if (choice.solution) newest_conversions_ = choice.solution->found.conversions;
    if (choice.placement.chosen.empty()) return;
    const std::vector<int> candidates =
        unknown_candidates(choice.placement, static_cast<size_t>(groups_of_family));
    groups_of_family *= tuner_.tuning().family_growth;
    const std::vector<NeededConversion> conversions = unknown_conversions();
    if (candidates.empty() && conversions.empty()) return;
    if (conversions.empty() && can_gain_little(task, choice.placement, choose)) return;
    tuner_.measure(candidates, conversions, max_seconds - stopwatch.read().seconds);
    // Each is requested only once, whatever the result.
    for (const int index : candidates) is_given_up_[static_cast<size_t>(index)] = true;
    for (const NeededConversion& conversion : conversions)
      requested_conversions_.insert(conversion.cost_key);
  }
}

// Whether the price of `placement` in `task`, a bound, is close to that of what can be chosen
// already.
bool MeasurementLoop::can_gain_little(const ChoiceTask& task, const Placement& placement,
                                      const ChooseForTask& choose) const {
  const double bound = price(task, placement);
  Constraints constraints = task.constraints();
  constraints.excluded.assign(context_.task.offers.candidates.size(), false);
  for (size_t index = 0; index < constraints.excluded.size(); ++index) {
    constraints.excluded[index] = is_pending(static_cast<int>(index));
  }
  const ChoiceTask restricted = task.with(std::move(constraints));
  const Placement measured = choose(restricted).placement;
  const double seconds = price(restricted, measured);
  // Not before every node has a measured candidate.
  if (measured.chosen.empty()) return false;
  const MeasureTuning& tuning = tuner_.tuning();
  const double spent = tuner_.seconds() * std::min(1.0, tuning.typical_run_seconds / seconds);
  return bound > (1 - tuning.little_gain - tuning.gain_per_second * spent) * seconds;
}

SolvedTask MeasurementLoop::restrict_to_measured(Constraints constraints,
                                                 const Placement& allowed) {
  tuner_.report(BindPhase::Choosing);
  context_.prices.look_up_guesses();
  std::vector<bool> is_pending(context_.task.offers.candidates.size(), false);
  for (size_t index = 0; index < is_pending.size(); ++index) {
    is_pending[index] = is_unmeasured(static_cast<int>(index));
  }
  const auto allow = [&](const Placement& placement) {
    for (const int index : placement.chosen) is_pending[static_cast<size_t>(index)] = false;
    constraints.excluded = is_pending;
  };
  const auto has_choice = [](const SolvedTask& solved) {
    return !solved_or_greedy(solved.task, solved.solution).chosen.empty();
  };
  constraints.excluded.clear();
  const ChoiceTask unrestricted(context_.problem, context_.prices.choice_prices(), constraints);
  allow(allowed);
  SolvedTask measured = solved(unrestricted.with(constraints));
  if (has_choice(measured)) return measured;
  // The time was over before every node had a measured candidate. Also allows the candidates of the
  // choice without prices.
  allow(in_order(unrestricted));
  measured = solved(unrestricted.with(constraints));
  if (has_choice(measured)) return measured;
  return solved(unrestricted);  // the lower bound is part of the description
}

SolvedTask MeasurementLoop::solved(ChoiceTask task) {
  ChoiceSolution solution = solve(task);
  newest_conversions_ = solution.found.conversions;
  return {.task = std::move(task), .solution = std::move(solution)};
}

BuiltChoice MeasurementLoop::choose_buildable(Constraints& constraints,
                                              const Placement& preferred) {
  const PhaseTimer::Scope running(tuner_.phases(), "choose");
  SolvedTask measured = restrict_to_measured(constraints);
  std::optional<ChoiceSolution> solution = std::move(measured.solution);
  ChoiceTask task = std::move(measured.task);
  while (true) {
    Choice choice = choose_covering(task, context_.base.offers, context_.base.graph, preferred,
                                    std::move(solution));
    solution = std::move(choice.solution);
    if (std::optional<Constraints> restricted =
            context_.fitter.restrict_to_budget(choice.placement, task, preferred)) {
      constraints = *std::move(restricted);
      // Candidates that replace the forbidden ones may be unmeasured, because they could not win
      // before.
      measure_potential_winners(constraints, solve_or_greedy);
      measured = restrict_to_measured(constraints);
      solution = std::move(measured.solution);
      task = std::move(measured.task);
      continue;
    }
    const std::vector<int> failed = build(choice.placement);
    if (failed.empty()) {
      // The memory that libraries keep is known now.
      if (context_.fitter.fits(choice.placement, task)) {
        return {.task = std::move(task), .placement = std::move(choice.placement)};
      }
      continue;
    }
    constraints = with_failed(task.constraints(), failed, context_.base.offers.candidates.size());
    constraints.oversized.clear();
    task = task.with(constraints);
    solution.reset();
    context_.fitter.start(task, preferred);
  }
}

std::vector<int> MeasurementLoop::build(const Placement& placement) {
  const PhaseTimer::Scope running(tuner_.phases(), "build plans");
  AssembledKernels kernels = context_.assembler.build(
      placement, context_.base,
      [&](size_t done, size_t total) { tuner_.report(BindPhase::Building, {}, done, total); });
  TESSERA_CHECK(!kernels.released_weight, "who measures has all weights");
  return std::move(kernels.failed);
}

bool MeasurementLoop::is_measured(const Placement& placement, const Placement& exempt) const {
  return std::ranges::none_of(placement.chosen, [&](int index) {
    return is_unmeasured(index) && std::ranges::find(exempt.chosen, index) == exempt.chosen.end();
  });
}

// Whether the candidate can be measured, but was not.
bool MeasurementLoop::is_unmeasured(int candidate) const {
  const auto at = static_cast<size_t>(candidate);
  const bool can_be =
      context_.prices.keys()[at] && context_.task.offers.candidates[at].has_kernel();
  return can_be && !context_.prices.is_measured(candidate);
}

bool MeasurementLoop::is_pending(int candidate) const {
  return !is_given_up_[static_cast<size_t>(candidate)] && !context_.prices.is_measured(candidate);
}

bool MeasurementLoop::differs_in_dense_layout(int left, int right) const {
  const std::vector<Candidate>& all = context_.task.offers.candidates;
  const Candidate& one = all[static_cast<size_t>(left)];
  const Candidate& other = all[static_cast<size_t>(right)];
  return one.is_any_dense && other.is_any_dense && one.preference == other.preference &&
         one.algorithm == other.algorithm && one.threads == other.threads;
}

// The unmeasured candidates of `placement`, and their competitors for the same nodes with about the
// same price; they are measured in alternation. Takes at most `groups_of_family` groups of each
// family: their results improve the bounds of the others, which may then be unable to win.
std::vector<int> MeasurementLoop::unknown_candidates(const Placement& placement,
                                                     size_t groups_of_family) const {
  const PricedOffers& prices = context_.prices;
  const double max_ratio = tuner_.tuning().competitor_ratio;
  std::vector<int> unknown;
  std::map<std::string_view, std::set<const tuning::TuneGroup*>> taken;
  for (const int chosen : placement.chosen) {
    if (!is_pending(chosen)) continue;
    const tuning::TuneGroup* group = group_of_.at(chosen);
    for (const int competitor : group->candidates) {
      if (!is_pending(competitor)) continue;
      if (prices.seconds(competitor) > max_ratio * prices.seconds(chosen)) continue;
      // The time in one dense layout predicts the others, which are measured once they are chosen.
      if (competitor != chosen && differs_in_dense_layout(competitor, chosen)) continue;
      std::set<const tuning::TuneGroup*>& groups =
          taken[families_[static_cast<size_t>(competitor)]];
      if (groups.size() < groups_of_family) groups.insert(group);
      if (groups.contains(group)) unknown.push_back(competitor);
    }
  }
  return unknown;
}

std::vector<NeededConversion> MeasurementLoop::unknown_conversions() const {
  std::vector<NeededConversion> unknown;
  std::set<tuning::ConversionCostKey> seen = requested_conversions_;
  for (const PlacementConversion& made : newest_conversions_) {
    for (NeededConversion& step : tuning::conversions_between(
             context_.task, ValueId{made.value}, LayoutId{made.from}, LayoutId{made.to})) {
      const bool is_known = step.is_of_host() || costs_.conversions.contains(step.cost_key);
      if (!is_known && seen.insert(step.cost_key).second) unknown.push_back(std::move(step));
    }
  }
  return unknown;
}

}  // namespace tessera
