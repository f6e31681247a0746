#include "measure/tune_placement.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "choose/choice.h"
#include "measure/measurement_loop.h"
#include "measure/plan_trials.h"
#include "measure/quote.h"
#include "measure/race.h"
#include "measure/run_off.h"
#include "measure/step_recorder.h"
#include "price/stored_plans.h"
#include "tessera/error.h"

namespace tessera {
namespace {

using tuning::PhaseTimer;
using tuning::Timing;

// Not 0, which would mean no limit.
constexpr double kMinBudget = 1e-6;

// The time of a run of a plan.
struct PlanRun {
  Placement placement;
  double seconds = 0;
};

class PlacementTuner {
 public:
  PlacementTuner(const TuningContext& context, const PricingOptions& options)
      : context_(context),
        base_(context.base),
        task_(context.task),
        prices_(context.prices),
        plan_key_(context.plan_key),
        known_(context.known),
        costs_(*options.costs),
        measures_all_(options.measures_all),
        runs_per_build_(options.runs_per_build),
        wants_startup_plan_(options.wants_startup_plan),
        log_(options.tune.log),
        recorder_(prices_, costs_),
        loop_(context, effort(options), costs_, options.fully_measured_backends),
        tuner_(loop_.tuner()),
        trials_(context, tuner_, recorder_, options.tune.inputs, is_short_) {}

  TunedPlacement run() {
    // Plans are raced even if all prices are known.
    if (quote_) tuner_.report(BindPhase::Starting);
    forget_contexts();
    if (measures_all_) loop_.measure_all();
    const double max_seconds = seconds_to_measure();
    loop_.measure_potential_winners(constraints_, solve_or_greedy, max_seconds);
    is_cut_short_ = tuner_.seconds() > max_seconds;
    // Candidates that were measured now may be better than the known plan.
    if (tuner_.measured() == 0) preferred_ = known_;
    BuiltChoice chosen = loop_.choose_buildable(constraints_, preferred_);
    const double isolated_seconds = price(chosen.task, chosen.placement) -
                                    amortized_build_seconds(chosen.task, chosen.placement);
    std::vector<ContenderDescription> run_off;
    if (is_worth_running()) run_off = run_contenders(chosen);
    Placement best = std::move(chosen.placement);
    if (run_off.empty() && !has_time_for_race()) best = unraced(best);
    // Brings prices up to date. Results of the last rounds about other placements no longer change
    // the choice.
    SolvedTask solved = loop_.restrict_to_measured(constraints_, best);
    Placement startup_plan;
    if (wants_startup_plan_ && has_run_) startup_plan = find_startup_plan(best, solved);
    PlacementDescription description = describe(solved.task, {best, solved.solution});
    TunedPlacement result{.placement = std::move(best),
                          .startup_plan = std::move(startup_plan),
                          .solved = std::move(solved),
                          .description = std::move(description)};
    add_overhead(result.description);
    result.description.isolated_seconds = isolated_seconds;
    if (!run_off.empty()) {
      result.description.measured_seconds = run_off.front().seconds;
      result.description.contenders = std::move(run_off);
    }
    describe_tuning(result.tuning);
    return result;
  }

 private:
  // Empty if plans could not be run.
  std::vector<ContenderDescription> run_contenders(BuiltChoice& chosen) {
    has_run_ = true;
    try {
      refine_in_context(chosen);
      return compare_contenders(chosen);
    } catch (const Error& error) {
      note(error, "the whole plan could not be run on the inputs for tuning");
      return {};
    }
  }

  void describe_tuning(TuningDescription& tuning) {
    tuning = tessera::tuning::describe(tuner_.report());
    tuning.quote = quote_;
    tuning.gain = gain_;
    if (is_cut_short_) tuning.is_stopped = tuning.is_out_of_time = true;
    if (is_short_ && shared_ != nullptr) shared_->spend(tuning.seconds);
    tuning.offered = static_cast<int>(task_.offers.candidates.size());
    for (std::string& note : notes_) tuning.notes.push_back(std::move(note));
  }

  // Memory that does not suffice for measuring may suffice for runs; the user can give more.
  void note(const Error& error, const std::string& what) {
    notes_.push_back(what + ": " + error.what());
    if (error.kind() == ErrorKind::OutOfMemory && log_ != nullptr) log_->warn(notes_.back());
  }

  // Times in the plans of other graphs say little about this one, where other kernels run before.
  void forget_contexts() {
    for (const std::optional<tuning::CostKey>& key : prices_.keys()) {
      if (!key) continue;
      const auto found = costs_.kernels.find(*key);
      if (found != costs_.kernels.end()) found->second.in_context.reset();
    }
  }

  // Adds the overhead of a run, which is the same for every choice.
  void add_overhead(PlacementDescription& description) const {
    const double gap_seconds = description.gap * description.lower_bound_seconds;
    description.predicted_seconds += recorder_.overhead_seconds();
    description.lower_bound_seconds += recorder_.overhead_seconds();
    if (description.lower_bound_seconds > 0) {
      description.gap = gap_seconds / description.lower_bound_seconds;
    }
  }

  // The options for the tuner. Graphs that take little time get little effort: the machine's speed
  // is not measured, and no process is started if `measures_short_here` is set.
  tuning::TuneOptions effort(const PricingOptions& options) {
    tuning::TuneOptions effort = options.tune;
    const ChoiceTask task(context_.problem, prices_.choice_prices(), constraints_);
    const Placement unmeasured = in_order(task);
    const double seconds = price(task, unmeasured) - amortized_build_seconds(task, unmeasured);
    is_short_ = is_short(unmeasured, seconds, options);
    // A quote takes longer than it takes to tune a short graph.
    const bool is_limited = is_short_ && !options.measures_all && effort.budget_seconds <= 0;
    if (!is_limited) effort.quote = quote_ = quote_tuning(context_, options);
    if (!is_short_ || options.measures_all) return effort;
    if (options.measures_short_here) effort.start_bench = nullptr;
    effort.measures_speed = false;
    // A budget of the user takes precedence.
    if (effort.budget_seconds > 0) return effort;
    shared_ = options.shared;
    double max_seconds = options.tune.tuning.short_graph_budget_seconds;
    if (shared_ != nullptr) max_seconds = std::min(max_seconds, shared_->allowance_seconds());
    effort.budget_seconds = std::max(max_seconds, kMinBudget);
    return effort;
  }

  // The time limit of measuring candidates. The rest is reserved for running plans, so that the
  // fastest of those known by then is chosen.
  double seconds_to_measure() const {
    return (1 - tuner_.tuning().running_share) * tuner_.seconds_left();
  }

  // --- Running whole plans

  bool is_worth_running() const {
    const bool has_sparse =
        std::any_of(base_.graph.values.begin(), base_.graph.values.end(),
                    [](const Value& value) { return value.sparse.has_value(); });
    return !has_sparse && has_time_for_race();
  }

  // Short plans are raced within milliseconds, also after the time for measuring is spent.
  bool has_time_for_race() const {
    const bool is_soon_over = is_short_ && tuner_.measured() > 0 && !tuner_.is_cancelled();
    return tuner_.should_continue() || is_soon_over;
  }

  void record(const BuiltChoice& chosen) {
    trials_.record(chosen.placement, *trials_.runner_of(chosen.placement, chosen.task));
  }

  void refine_in_context(BuiltChoice& best) {
    for (int round = 0; round < tuner_.tuning().context_rounds && tuner_.should_continue();
         ++round) {
      record(best);
      // The remaining time is for the run-off.
      if (is_cut_short_) return;
      loop_.measure_potential_winners(constraints_, solve_or_greedy);
      BuiltChoice next = loop_.choose_buildable(constraints_, preferred_);
      const bool is_same = next.placement.chosen == best.placement.chosen;
      best = std::move(next);
      if (is_same) return;
    }
    if (tuner_.should_continue()) record(best);
  }

  // The choice if there was no time for a race: the plan that was the fastest before, or else the
  // choice without prices, because a choice by some prices may be slower than that.
  Placement unraced(Placement best) {
    Constraints constraints = constraints_;
    constraints.excluded.clear();
    const ChoiceTask task(context_.problem, prices_.choice_prices(), std::move(constraints));
    for (const Placement& other : {known_, in_order(task)}) {
      const bool is_possible = is_usable(task, other) && context_.fitter.fits(other, task);
      if (is_possible && loop_.build(other).empty()) return other;
    }
    return best;
  }

  // Stores the plan in the costs, so that later choices by these costs take it.
  void keep(const Contender& winner) {
    if (!plan_key_) return;
    costs_.plans[*plan_key_] = {.steps = tuning::planned_steps(task_, winner.placement.chosen),
                                .timing = winner.timing};
  }

  // Notes the gain of the winner, the first of `all`, over the choice without prices.
  void note_gain(const std::vector<Contender>& all) {
    const auto found = std::ranges::find_if(all, &Contender::is_in_order);
    if (found == all.end() || is_short_) return;
    // Of plans that may be equally fast, the first wins, even if another one ran a bit faster.
    gain_ = std::max(0.0, 1 - all.front().timing.seconds / found->timing.seconds);
  }

  // Sets the placement of `best` to the winner and returns the times: the winner first.
  std::vector<ContenderDescription> compare_contenders(BuiltChoice& best) {
    if (!has_time_for_race()) return {};
    const std::vector<Contender> all =
        RunOff(context_, best.task, loop_, trials_, recorder_).run(best.placement, known_);
    if (all.empty()) return {};
    best.placement = all.front().placement;
    keep(all.front());
    note_gain(all);
    std::vector<ContenderDescription> described;
    for (const Contender& contender : all) {
      runs_.push_back({contender.placement, contender.timing.seconds});
      ContenderDescription& timed = described.emplace_back(contender.description);
      timed.seconds = contender.timing.seconds;
      timed.low = contender.timing.low;
      timed.high = contender.timing.high;
    }
    return described;
  }

  // --- The first runs

  // Returns the placement that returns the first result soonest, build time included: one that was
  // run, or the cheapest by measured prices. Empty if that saves little. `solved` is the
  // task that allows `best`; it is replaced if prices are looked up again.
  Placement find_startup_plan(const Placement& best, SolvedTask& solved) {
    const double min_saved_seconds = tuner_.tuning().startup_min_saved_seconds;
    if (build_seconds(solved.task, best) < min_saved_seconds) return {};
    if (!tuner_.report(BindPhase::Choosing)) return {};
    prices_.set_runs_per_build(1);
    loop_.measure_potential_winners(constraints_, solve_or_greedy,
                                    tuner_.tuning().startup_share * tuner_.seconds());
    const SolvedTask first_run = loop_.restrict_to_measured(constraints_);
    time_on_its_own(first_run.solution.found.placement, first_run.task);
    const auto first_result_seconds = [&](const PlanRun& run) {
      return run.seconds + amortized_build_seconds(first_run.task, run.placement);
    };
    const auto soonest = std::ranges::min_element(runs_, {}, first_result_seconds);
    Placement startup_plan;
    if (soonest != runs_.end() &&
        price(first_run.task, best) - first_result_seconds(*soonest) > min_saved_seconds) {
      startup_plan = soonest->placement;
    }
    prices_.set_runs_per_build(runs_per_build_);
    solved = loop_.restrict_to_measured(constraints_, best);
    return startup_plan;
  }

  // Adds the time of `placement`, a choice of `task`, to `runs_`, if it can be built and run.
  void time_on_its_own(const Placement& placement, const ChoiceTask& task) {
    if (placement.chosen.empty() || !loop_.is_measured(placement)) return;
    if (!loop_.build(placement).empty()) return;
    try {
      const std::unique_ptr<PlanRunner> runner = trials_.runner_of(placement, task);
      const std::optional<tuning::Race> alone =
          trials_.race({runner.get()}, {{.what = "for the first runs"}}, {0});
      if (alone) runs_.push_back({placement, alone->timings().front().seconds});
    } catch (const Error& error) {
      note(error, "the plan for the first runs could not be run");
    }
  }

  const TuningContext& context_;
  BuiltPlan& base_;
  const tuning::TuningTask& task_;
  PricedOffers& prices_;
  const std::optional<tuning::PlanKey>& plan_key_;
  const Placement& known_;   // the fastest plan so far; may be empty
  Placement preferred_;      // `known_` if nothing was measured before the first choice, or empty
  Constraints constraints_;  // what cannot be built or does not fit
  tuning::CostTable& costs_;
  bool measures_all_;
  int64_t runs_per_build_;
  bool wants_startup_plan_;
  const Log* log_;  // may be null
  std::vector<PlanRun> runs_;
  bool is_short_ = false;
  bool has_run_ = false;       // whole plans
  bool is_cut_short_ = false;  // the time for measuring ended
  tuning::SharedCosts* shared_ = nullptr;
  std::vector<std::string> notes_;
  std::optional<TuningQuote> quote_;
  std::optional<double> gain_;
  StepRecorder recorder_;
  MeasurementLoop loop_;
  tuning::Tuner& tuner_;  // of `loop_`
  PlanTrials trials_;
};

}  // namespace

bool is_short(const Placement& in_order, double seconds, const PricingOptions& options) {
  return !in_order.chosen.empty() && seconds < options.tune.tuning.short_graph_seconds &&
         !options.is_in_background;
}

TunedPlacement tune_placement(const TuningContext& context, const PricingOptions& options) {
  return PlacementTuner(context, options).run();
}

}  // namespace tessera
