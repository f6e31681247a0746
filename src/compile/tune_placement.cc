#include "compile/tune_placement.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/stopwatch.h"
#include "compile/time_plans.h"
#include "tessera/error.h"
#include "tune/capture.h"
#include "tune/stored_plans.h"

namespace tessera {
namespace {

using tuning::CostKey;
using tuning::NeededConversion;
using tuning::Phases;
using tuning::Timing;

// A graph that takes less is given little time.
constexpr double kShortSeconds = 1e-3;
constexpr double kBudgetOfShort = 0.1;
constexpr double kLeastBudget = 1e-6;
constexpr int kContextRounds = 3;
// Runs of whole plans within this of each other are equally fast.
constexpr double kNoise = 1.02;
// Contenders whose price is so far from the best are not run.
constexpr double kHopeless = 1.6;
// Candidates for the same nodes within this of the chosen one's bound are measured beside it.
constexpr double kRivals = 1.05;
// What backends alone are good for may take so much of the time spent before, or so long where
// that is little: the best single library is what people compare with.
constexpr double kShareOfBackendsAlone = 0.15;
constexpr double kSecondsOfBackendsAlone = 2;
// The same for kernels that are soon built.
constexpr double kShareOfStarting = 0.08;
// Of the time that there is, what is kept for running whole plans.
constexpr double kShareOfRunning = 0.2;
constexpr double kNoLimit = std::numeric_limits<double>::infinity();
// What another plan must save of building kernels to be worth starting with.
constexpr double kSlowToBuild = 0.02;

struct Contender {
  std::string name;
  Placement placement;
};

// What a run of a plan took.
struct PlanRun {
  Placement placement;
  double seconds = 0;
};

class PlacementTuner {
 public:
  PlacementTuner(const TuningGround& ground, const PricingOptions& options)
      : base_(ground.base),
        subject_(ground.subject),
        prices_(ground.prices),
        plan_key_(ground.plan_key),
        chooser_(ground.chooser),
        fitter_(ground.fitter),
        assembler_(ground.assembler),
        costs_(*options.costs),
        measures_all_(options.measures_all),
        runs_per_build_(options.runs_per_build),
        wants_until_built_(options.wants_until_built),
        families_(tuning::candidate_families(subject_, prices_.groups())),
        is_given_up_(subject_.offers.candidates.size(), false),
        tuner_(subject_, prices_.groups(), prices_.keys(), base_.plugins, effort(options), costs_) {
    for (const tuning::TuneGroup& group : prices_.groups()) {
      for (const int index : group.candidates) group_of_[index] = &group;
    }
    for (size_t index = 0; index < is_given_up_.size(); ++index) {
      // What cannot be measured alone keeps its guess; views take nothing.
      const bool has_kernel = subject_.offers.candidates[index].has_kernel();
      if (!prices_.keys()[index] || !has_kernel) is_given_up_[index] = true;
    }
  }

  TunedPlacement run() {
    if (measures_all_) measure_all();
    const Placement known = chooser_.preferred();
    const double most_seconds = seconds_to_measure();
    measure_what_could_win([&] { return chooser_.solve(); }, most_seconds);
    is_cut_short_ = tuner_.report().seconds > most_seconds;
    // What was measured since may be better.
    if (tuner_.report().measured > 0) chooser_.prefer({});
    Placement best = choose_buildable();
    const double isolated_seconds = chooser_.price(best) - chooser_.build_part(best);
    std::vector<ContenderDescription> run_off;
    if (is_worth_running()) {
      has_run_ = true;
      try {
        refine_in_context(best);
        run_off = hold_run_off(best, known);
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::OutOfMemory) throw;
        notes_.push_back("the plan could not be run as a whole on the inputs to tune with: " +
                         std::string(error.what()));
      }
    }
    // What the last rounds learned of the others changes nothing any more.
    if (has_run_) rest_on_measurements();
    Placement until_built;
    if (wants_until_built_ && has_run_) until_built = find_until_built(best);
    chooser_.prefer(best);
    TunedPlacement result{.placement = best,
                          .until_built = std::move(until_built),
                          .description = chooser_.describe(best)};
    add_around(result.description);
    result.description.isolated_seconds = isolated_seconds;
    if (!run_off.empty()) {
      result.description.measured_seconds = run_off.front().seconds;
      result.description.contenders = std::move(run_off);
    }
    result.tuning = describe_tuning(tuner_.report());
    if (is_cut_short_) result.tuning.is_stopped = result.tuning.is_out_of_time = true;
    if (is_short_ && shared_ != nullptr) shared_->spend(result.tuning.seconds);
    result.tuning.offered = static_cast<int>(subject_.offers.candidates.size());
    for (std::string& note : notes_) result.tuning.notes.push_back(std::move(note));
    return result;
  }

 private:
  // What no choice changes, as a run takes it all the same.
  void add_around(PlacementDescription& description) const {
    const double gap_seconds = description.gap * description.lower_bound_seconds;
    description.predicted_seconds += around_seconds_;
    description.lower_bound_seconds += around_seconds_;
    if (description.lower_bound_seconds > 0) {
      description.gap = gap_seconds / description.lower_bound_seconds;
    }
  }

  // Little for graphs that take little: nothing is started then, and nothing measured of the
  // machine.
  tuning::TuneOptions effort(const PricingOptions& options) {
    tuning::TuneOptions effort = options.tune;
    given_inputs_ = effort.inputs;
    const Placement in_order = chooser_.in_order();
    const double seconds = chooser_.price(in_order) - chooser_.build_part(in_order);
    is_short_ = !in_order.chosen.empty() && seconds < kShortSeconds;
    if (!is_short_ || options.measures_all) return effort;
    if (options.measures_short_here) effort.start_bench = nullptr;
    effort.measures_speed = false;
    // Who names a budget has it.
    if (effort.budget_seconds > 0) return effort;
    shared_ = options.shared;
    double most_seconds = kBudgetOfShort;
    if (shared_ != nullptr) most_seconds = std::min(most_seconds, shared_->allowance_seconds());
    // 0 would be no limit.
    effort.budget_seconds = std::max(most_seconds, kLeastBudget);
    return effort;
  }

  // --- Measuring what could win

  void measure_all() {
    std::vector<int> all(subject_.offers.candidates.size());
    std::iota(all.begin(), all.end(), 0);
    tuner_.measure(all, tuning::needed_conversions(subject_));
  }

  // Until what `choose` gives by bounds rests on measurements, or `most_seconds` are over.
  template <class Choose>
  void measure_what_could_win(const Choose& choose, double most_seconds = kNoLimit) {
    const Stopwatch stopwatch;
    while (tuner_.may_go_on() && stopwatch.read().seconds < most_seconds) {
      const Phases::Running running(tuner_.phases(), "choose");
      prices_.look_up_bounds(is_given_up_);
      chooser_.set_prices(prices_);
      chooser_.leave_out({});
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

  bool is_unknown(int candidate) const {
    return !is_given_up_[static_cast<size_t>(candidate)] && !prices_.is_measured(candidate);
  }

  // Of the placement, and for the same nodes those that promise as much: they are measured side by
  // side. Of each family those of one group: what they teach may leave out the others.
  std::vector<int> unknown_candidates(const Placement& placement) const {
    std::vector<int> unknown;
    std::map<std::string_view, const tuning::TuneGroup*> taken;
    for (const int chosen : placement.chosen) {
      if (!is_unknown(chosen)) continue;
      const tuning::TuneGroup* group = group_of_.at(chosen);
      for (const int rival : group->candidates) {
        if (!is_unknown(rival)) continue;
        if (prices_.seconds(rival) > kRivals * prices_.seconds(chosen)) continue;
        const std::string_view family = families_[static_cast<size_t>(rival)];
        if (taken.try_emplace(family, group).first->second == group) unknown.push_back(rival);
      }
    }
    return unknown;
  }

  std::vector<NeededConversion> unknown_conversions() const {
    std::vector<NeededConversion> unknown;
    std::set<tuning::ConversionCostKey> seen = asked_;
    for (const PlacementConversion& made : chooser_.solution().conversions) {
      for (NeededConversion& step : tuning::conversions_between(
               subject_, ValueId{made.value}, LayoutId{made.from}, LayoutId{made.to})) {
        const bool is_known = costs_.conversions.contains(step.cost_key);
        if (!is_known && seen.insert(step.cost_key).second) unknown.push_back(std::move(step));
      }
    }
    return unknown;
  }

  // From here on only what was measured is chosen, where that is enough for every node.
  void rest_on_measurements() {
    prices_.look_up_guesses();
    chooser_.set_prices(prices_);
    std::vector<bool> is_unknown(subject_.offers.candidates.size(), false);
    for (size_t index = 0; index < is_unknown.size(); ++index) {
      is_unknown[index] = is_unmeasured(static_cast<int>(index));
    }
    chooser_.leave_out(is_unknown);
    if (!chooser_.solve().chosen.empty()) return;
    // Time was over before every node had a candidate that was measured. Those that none covers are
    // computed as they would be without prices.
    chooser_.leave_out({});
    const Placement in_order = chooser_.in_order();
    for (const int index : in_order.chosen) is_unknown[static_cast<size_t>(index)] = false;
    chooser_.leave_out(std::move(is_unknown));
    if (!chooser_.solve().chosen.empty()) return;
    chooser_.leave_out({});
    chooser_.solve();  // for the bound that the choice is described by
  }

  // How long to measure candidates: some time is kept to run plans, so that of those that are known
  // then the fastest is taken.
  double seconds_to_measure() const { return (1 - kShareOfRunning) * tuner_.seconds_left(); }

  // Though it can be measured.
  bool is_unmeasured(int candidate) const {
    const auto at = static_cast<size_t>(candidate);
    const bool can_be = prices_.keys()[at] && subject_.offers.candidates[at].has_kernel();
    return can_be && !prices_.is_measured(candidate);
  }

  // The choice by what is known, built.
  Placement choose_buildable() {
    const Phases::Running running(tuner_.phases(), "choose");
    rest_on_measurements();
    while (true) {
      Placement placement = choose_covering(chooser_, base_.offers, base_.graph);
      if (fitter_.makes_way(placement, chooser_)) {
        // What takes its place may not have been worth measuring before.
        measure_what_could_win([&] { return chooser_.solve(); });
        rest_on_measurements();
        continue;
      }
      const std::vector<int> failed = build(placement);
      if (failed.empty()) return placement;
      for (const int index : failed) chooser_.forbid(index);
      fitter_.start(chooser_);
    }
  }

  // As PlanAssembler has it.
  std::vector<int> build(const Placement& placement) {
    const Phases::Running running(tuner_.phases(), "build plans");
    return assembler_.build(placement, base_);
  }

  // --- Running whole plans

  bool is_worth_running() const {
    const bool has_sparse =
        std::any_of(base_.graph.values.begin(), base_.graph.values.end(),
                    [](const Value& value) { return value.sparse.has_value(); });
    return !has_sparse && tuner_.may_go_on() && tuner_.report().measured > 0;
  }

  RunLimits limits() const {
    RunLimits limits;
    if (is_short_) limits.seconds = kBudgetOfShort / 20;
    limits.seconds = std::min(limits.seconds, tuner_.seconds_left() / 4);
    return limits;
  }

  std::unique_ptr<PlanRunner> runner_of(const Placement& placement) {
    const Phases::Running running(tuner_.phases(), "lay out");
    BuiltPlan built = assembler_.lay_out(base_, placement, {}, chooser_.conversion_prices());
    assembler_.pack(built);
    return std::make_unique<PlanRunner>(std::move(built), subject_.threads);
  }

  const std::vector<Tensor>& inputs() {
    if (inputs_.empty()) {
      inputs_ = given_inputs_.empty() ? tuning::draw_inputs(base_.graph, 1) : given_inputs_;
    }
    return inputs_;
  }

  void refine_in_context(Placement& best) {
    for (int round = 0; round < kContextRounds && tuner_.may_go_on(); ++round) {
      record_in_context(best);
      // What time there is left is for the run-off.
      if (is_cut_short_) return;
      measure_what_could_win([&] { return chooser_.solve(); });
      const Placement next = choose_buildable();
      if (next.chosen == best.chosen) return;
      best = next;
    }
    if (tuner_.may_go_on()) record_in_context(best);
  }

  // Steps of equal work share a price: that of all of them on the whole.
  void record_in_context(const Placement& placement) {
    record_in_context(*runner_of(placement), limits());
  }

  void record_in_context(PlanRunner& runner, const RunLimits& limits) {
    const Phases::Running running(tuner_.phases(), "run plans");
    const StepTimes times = time_steps(runner, inputs(), limits);
    const std::vector<std::optional<Timing>>& timings = times.steps;
    around_seconds_ = times.around_seconds;
    std::map<CostKey, std::vector<Timing>> by_key;
    const ExecutionPlan& plan = runner.built().plan;
    for (size_t index = 0; index < timings.size(); ++index) {
      if (!timings[index] || plan.steps[index].kind != ExecutionStep::Kind::Kernel) continue;
      const std::optional<CostKey>& key =
          prices_.keys()[static_cast<size_t>(plan.steps[index].candidate)];
      if (key) by_key[*key].push_back(*timings[index]);
    }
    for (const auto& [key, several] : by_key) {
      const auto found = costs_.kernels.find(key);
      if (found != costs_.kernels.end()) found->second.in_context = mean(several);
    }
  }

  static Timing mean(const std::vector<Timing>& timings) {
    Timing sum;
    const auto part = 1 / static_cast<double>(timings.size());
    for (const Timing& timing : timings) {
      sum.seconds += part * timing.seconds;
      sum.low += part * timing.low;
      sum.high += part * timing.high;
      sum.rounds = std::max(sum.rounds, timing.rounds);
    }
    return sum;
  }

  // Whether all that it runs is known to be right.
  bool is_measured(const Placement& placement) const {
    return std::none_of(placement.chosen.begin(), placement.chosen.end(),
                        [&](int index) { return is_unmeasured(index); });
  }

  void measure(const Placement& placement) {
    std::vector<int> unknown;
    for (const int index : placement.chosen) {
      if (is_unmeasured(index)) unknown.push_back(index);
    }
    tuner_.measure(unknown, {});
  }

  void add(std::vector<Contender>& contenders, const std::string& name, Placement placement) {
    if (placement.chosen.empty()) return;
    const bool is_new = std::none_of(
        contenders.begin(), contenders.end(),
        [&](const Contender& other) { return other.placement.chosen == placement.chosen; });
    const bool has_hope =
        contenders.empty() ||
        chooser_.price(placement) < kHopeless * chooser_.price(contenders[0].placement);
    if (!is_new || !has_hope || !is_measured(placement)) return;
    if (!fitter_.fits(placement, chooser_)) return;
    if (!build(placement).empty()) return;
    contenders.push_back({name, std::move(placement)});
  }

  std::vector<Contender> contenders(const Placement& best, const Placement& known) {
    std::vector<Contender> all;
    chooser_.leave_out({});
    measure(chooser_.in_order());
    rest_on_measurements();
    add(all, "chosen", best);
    add(all, "known", known);
    add(all, "solved", chooser_.solve());
    add(all, "greedy", chooser_.greedy());
    add(all, "in order", chooser_.in_order());
    std::set<std::pair<int, std::string>> backends;
    for (const Candidate& candidate : base_.offers.candidates) {
      if (candidate.has_kernel()) backends.emplace(candidate.preference, candidate.backend());
    }
    const double share = kShareOfBackendsAlone * tuner_.report().seconds;
    const double most_seconds = is_short_ ? share : std::max(share, kSecondsOfBackendsAlone);
    const Stopwatch stopwatch;
    for (const auto& [preference, backend] : backends) {
      measure_what_could_win([&, at = preference] { return alone_if_hopeful(at, all); },
                             most_seconds - stopwatch.read().seconds);
      rest_on_measurements();
      add(all, backend + " alone", chooser_.alone(preference));
    }
    return all;
  }

  // By bounds; nothing where even these are too far from what is known.
  Placement alone_if_hopeful(int preference, const std::vector<Contender>& known) const {
    Placement placement = chooser_.alone(preference);
    const bool has_hope =
        placement.chosen.empty() || known.empty() ||
        chooser_.price(placement) < kHopeless * chooser_.price(known[0].placement);
    return has_hope ? placement : Placement{};
  }

  // Of the plans that were run, and the best by what is measured of their parts, the one that has
  // the first result first; nothing where that saves little.
  Placement find_until_built(const Placement& best) {
    if (chooser_.build_seconds(best) < kSlowToBuild) return {};
    prices_.set_runs_per_build(1);
    measure_what_could_win([&] { return chooser_.solve(); },
                           kShareOfStarting * tuner_.report().seconds);
    rest_on_measurements();
    run_alone(chooser_.solve());
    const auto first_result_seconds = [&](const PlanRun& run) {
      return run.seconds + chooser_.build_part(run.placement);
    };
    const auto soonest = std::ranges::min_element(runs_, {}, first_result_seconds);
    Placement until_built;
    if (soonest != runs_.end() &&
        chooser_.price(best) - first_result_seconds(*soonest) > kSlowToBuild) {
      until_built = soonest->placement;
    }
    prices_.set_runs_per_build(runs_per_build_);
    rest_on_measurements();
    return until_built;
  }

  // Notes what `placement` takes, where it can be built and run.
  void run_alone(const Placement& placement) {
    if (placement.chosen.empty() || !is_measured(placement)) return;
    if (!build(placement).empty()) return;
    try {
      const std::unique_ptr<PlanRunner> runner = runner_of(placement);
      PlanRunner* const runners[] = {runner.get()};
      runs_.push_back({placement, time_runs(runners, inputs(), limits()).front().seconds});
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::OutOfMemory) throw;
      notes_.push_back("a plan that is soon built could not be run: " + std::string(error.what()));
    }
  }

  // So that whoever chooses by these costs later takes the same.
  void keep(const Placement& placement, const Timing& timing) {
    if (!plan_key_) return;
    costs_.plans[*plan_key_] = {.steps = tuning::planned_steps(subject_, placement.chosen),
                                .timing = timing};
  }

  // Gives what each took, the fastest first, and makes `best` the winner.
  std::vector<ContenderDescription> hold_run_off(Placement& best, const Placement& known) {
    if (!tuner_.may_go_on()) return {};
    const std::vector<Contender> all = contenders(best, known);
    // Where time was spent before all of the choice was measured.
    if (all.empty()) return {};
    std::vector<std::unique_ptr<PlanRunner>> owners;
    std::vector<PlanRunner*> runners;
    for (const Contender& contender : all) {
      owners.push_back(runner_of(contender.placement));
      runners.push_back(owners.back().get());
    }
    const Phases::Running running(tuner_.phases(), "run plans");
    const std::vector<Timing> timings = time_runs(runners, inputs(), limits());
    std::vector<double> prices;
    for (size_t index = 0; index < all.size(); ++index) {
      runs_.push_back({all[index].placement, timings[index].seconds});
      prices.push_back(timings[index].seconds + chooser_.build_part(all[index].placement));
    }
    const double least = *std::min_element(prices.begin(), prices.end());
    size_t winner = 0;
    while (prices[winner] > kNoise * least) ++winner;
    // What it takes was seen before only where it is the one that came out of the rounds.
    if (all[winner].placement.chosen != best.chosen) record_in_context(*runners[winner], limits());
    best = all[winner].placement;
    keep(best, timings[winner]);
    std::vector<ContenderDescription> described;
    for (size_t index = 0; index < all.size(); ++index) {
      described.push_back({all[index].name, timings[index].seconds});
    }
    std::rotate(described.begin(), described.begin() + static_cast<std::ptrdiff_t>(winner),
                described.begin() + static_cast<std::ptrdiff_t>(winner) + 1);
    std::stable_sort(
        described.begin() + 1, described.end(),
        [](const auto& left, const auto& right) { return left.seconds < right.seconds; });
    return described;
  }

  BuiltPlan& base_;
  const tuning::Subject& subject_;
  PricedOffers& prices_;
  const std::optional<tuning::PlanKey>& plan_key_;
  Chooser& chooser_;
  BudgetFitter& fitter_;
  PlanAssembler& assembler_;
  tuning::CostTable& costs_;
  bool measures_all_;
  int64_t runs_per_build_;
  bool wants_until_built_;
  std::vector<PlanRun> runs_;
  std::vector<Tensor> given_inputs_;
  std::vector<Tensor> inputs_;
  bool is_short_ = false;
  bool has_run_ = false;       // whole plans
  double around_seconds_ = 0;  // of a run, besides its steps
  bool is_cut_short_ = false;  // measuring ended because the time for it was over
  tuning::SharedCosts* shared_ = nullptr;
  std::map<int, const tuning::TuneGroup*> group_of_;  // by candidate
  std::vector<std::string> families_;                 // by candidate
  std::vector<bool> is_given_up_;  // by candidate: asked for once, or not to be measured at all
  std::set<tuning::ConversionCostKey> asked_;
  std::vector<std::string> notes_;
  tuning::Tuner tuner_;
};

}  // namespace

TunedPlacement tune_placement(const TuningGround& ground, const PricingOptions& options) {
  return PlacementTuner(ground, options).run();
}

}  // namespace tessera
