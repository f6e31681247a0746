#include "measure/measurement_loop.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/stopwatch.h"

namespace tessera {
namespace {

using tuning::NeededConversion;
using tuning::PhaseTimer;

// Candidates whose price is within this factor of the chosen one's, for the same nodes, are
// measured with it.
constexpr double kCompetitorRatio = 1.05;
// By this factor, more groups of a family are measured from one choice to the next: first few,
// whose results tell much about the others, then many, because choosing takes time, too.
constexpr double kGrowth = 1.3;
// Measuring ends if it could make the choice faster by this part at most, and by so much more for
// each second that tuning has taken: the longer it takes, the more it must promise. A graph that
// takes longer than kTypicalSeconds is worth more time in proportion.
constexpr double kLittleGain = 0.01;
constexpr double kGainPerSecond = 0.005;
constexpr double kTypicalSeconds = 0.1;

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

void MeasurementLoop::measure_potential_winners(const std::function<Placement()>& choose,
                                                double max_seconds) {
  const Stopwatch stopwatch;
  double groups_of_family = 1;
  while (tuner_.should_continue() && stopwatch.read().seconds < max_seconds) {
    const PhaseTimer::Scope running(tuner_.phases(), "choose");
    if (!tuner_.report(BindPhase::Choosing)) return;
    context_.prices.look_up_bounds(is_given_up_);
    context_.placer.set_prices(context_.prices);
    context_.placer.exclude({});
    const Placement placement = choose();
    if (placement.chosen.empty()) return;
    const std::vector<int> candidates =
        unknown_candidates(placement, static_cast<size_t>(groups_of_family));
    groups_of_family *= kGrowth;
    const std::vector<NeededConversion> conversions = unknown_conversions();
    if (candidates.empty() && conversions.empty()) return;
    if (conversions.empty() && can_gain_little(placement, choose)) return;
    tuner_.measure(candidates, conversions, max_seconds - stopwatch.read().seconds);
    // Each is requested only once, whatever the result.
    for (const int index : candidates) is_given_up_[static_cast<size_t>(index)] = true;
    for (const NeededConversion& conversion : conversions)
      requested_conversions_.insert(conversion.cost_key);
  }
}

// Whether the price of `placement`, a bound, is close to that of what can be chosen already.
bool MeasurementLoop::can_gain_little(const Placement& placement,
                                      const std::function<Placement()>& choose) {
  Placer& placer = context_.placer;
  const double bound = placer.price(placement);
  std::vector<bool> is_excluded(context_.task.offers.candidates.size(), false);
  for (size_t index = 0; index < is_excluded.size(); ++index) {
    is_excluded[index] = is_pending(static_cast<int>(index));
  }
  placer.exclude(std::move(is_excluded));
  const Placement measured = choose();
  const double price = placer.price(measured);
  placer.exclude({});
  // Not before every node has a measured candidate.
  if (measured.chosen.empty()) return false;
  const double seconds = tuner_.seconds() * std::min(1.0, kTypicalSeconds / price);
  return bound > (1 - kLittleGain - kGainPerSecond * seconds) * price;
}

void MeasurementLoop::restrict_to_measured(const Placement& allowed) {
  tuner_.report(BindPhase::Choosing);
  context_.prices.look_up_guesses();
  Placer& placer = context_.placer;
  placer.set_prices(context_.prices);
  std::vector<bool> is_pending(context_.task.offers.candidates.size(), false);
  for (size_t index = 0; index < is_pending.size(); ++index) {
    is_pending[index] = is_unmeasured(static_cast<int>(index));
  }
  for (const int index : allowed.chosen) is_pending[static_cast<size_t>(index)] = false;
  placer.exclude(is_pending);
  if (!placer.solve_or_greedy().chosen.empty()) return;
  // The time was over before every node had a measured candidate. Also allows the candidates of the
  // choice without prices.
  placer.exclude({});
  const Placement in_order = placer.in_order();
  for (const int index : in_order.chosen) is_pending[static_cast<size_t>(index)] = false;
  placer.exclude(std::move(is_pending));
  if (!placer.solve_or_greedy().chosen.empty()) return;
  placer.exclude({});
  placer.solve();  // its lower bound is part of the description
}

Placement MeasurementLoop::choose_buildable() {
  const PhaseTimer::Scope running(tuner_.phases(), "choose");
  Placer& placer = context_.placer;
  restrict_to_measured();
  while (true) {
    Placement placement = choose_covering(placer, context_.base.offers, context_.base.graph);
    if (context_.fitter.restrict_to_budget(placement, placer)) {
      // Candidates that replace the forbidden ones may be unmeasured, because they could not win
      // before.
      measure_potential_winners([&] { return placer.solve_or_greedy(); });
      restrict_to_measured();
      continue;
    }
    const std::vector<int> failed = build(placement);
    if (failed.empty()) {
      // The memory that libraries keep is known now.
      if (context_.fitter.fits(placement, placer)) return placement;
      continue;
    }
    for (const int index : failed) placer.forbid(index);
    context_.fitter.start(placer);
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
  std::vector<int> unknown;
  std::map<std::string_view, std::set<const tuning::TuneGroup*>> taken;
  for (const int chosen : placement.chosen) {
    if (!is_pending(chosen)) continue;
    const tuning::TuneGroup* group = group_of_.at(chosen);
    for (const int competitor : group->candidates) {
      if (!is_pending(competitor)) continue;
      if (prices.seconds(competitor) > kCompetitorRatio * prices.seconds(chosen)) continue;
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
  for (const PlacementConversion& made : context_.placer.solution().conversions) {
    for (NeededConversion& step : tuning::conversions_between(
             context_.task, ValueId{made.value}, LayoutId{made.from}, LayoutId{made.to})) {
      const bool is_known = step.is_of_host() || costs_.conversions.contains(step.cost_key);
      if (!is_known && seen.insert(step.cost_key).second) unknown.push_back(std::move(step));
    }
  }
  return unknown;
}

}  // namespace tessera
