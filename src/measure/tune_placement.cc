#include "measure/tune_placement.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/stopwatch.h"
#include "measure/capture.h"
#include "measure/measurement_loop.h"
#include "measure/step_recorder.h"
#include "measure/time_plans.h"
#include "price/stored_plans.h"
#include "tessera/error.h"

namespace tessera {
namespace {

using tuning::PhaseTimer;
using tuning::Timing;

// A graph that takes less than this gets little time for tuning.
constexpr double kShortSeconds = 1e-3;
constexpr double kBudgetOfShort = 0.1;
constexpr double kMinBudget = 1e-6;
constexpr int kContextRounds = 3;
// Plans whose times are within this factor of each other count as equally fast.
constexpr double kNoise = 1.01;
// Contenders whose price exceeds that of the first by this factor are not run.
constexpr double kMaxPriceRatio = 1.6;
// Plans within this factor of the fastest, at most kMaxFinalists, are compared more closely, in at
// most kFinalRounds rounds. No round begins after this share of the time spent before, or after
// this many seconds if that is more.
constexpr double kNearFastest = 1.06;
constexpr size_t kMaxFinalists = 3;
constexpr int kFinalRounds = 4;
constexpr double kShareOfFinals = 0.1;
constexpr double kSecondsOfFinals = 2;
// A recording is repeated, at most this many times, if its runs are slower than those of the
// run-off by this factor.
constexpr double kMaxPreemptedRatio = 1.05;
constexpr int kMaxRecordings = 4;
// Limit on the time to measure what each backend alone achieves: this share of the time spent
// before, or this many seconds if that is more. Users compare with the best single library.
constexpr double kShareOfBackendsAlone = 0.15;
constexpr double kSecondsOfBackendsAlone = 2;
// The same for candidates of a startup plan.
constexpr double kShareOfStarting = 0.08;
// The share of the remaining time that is reserved for running whole plans.
constexpr double kShareOfRunning = 0.2;
// The seconds that a startup plan must save.
constexpr double kSlowToBuild = 0.02;

struct Contender {
  std::string name;
  Placement placement;
  std::optional<int> alone;  // the preference of its backend, if it is of one backend alone
  std::unique_ptr<PlanRunner> runner;
  Timing timing;  // valid after it has run
};

// The time of a run of a plan.
struct PlanRun {
  Placement placement;
  double seconds = 0;
};

class PlacementTuner {
 public:
  PlacementTuner(const TuningContext& context, const PricingOptions& options)
      : base_(context.base),
        task_(context.task),
        prices_(context.prices),
        plan_key_(context.plan_key),
        placer_(context.placer),
        fitter_(context.fitter),
        assembler_(context.assembler),
        costs_(*options.costs),
        measures_all_(options.measures_all),
        runs_per_build_(options.runs_per_build),
        wants_startup_plan_(options.wants_startup_plan),
        recorder_(prices_, costs_),
        loop_(context, effort(options), costs_, options.fully_measured_backends),
        tuner_(loop_.tuner()) {}

  TunedPlacement run() {
    if (measures_all_) loop_.measure_all();
    const Placement known = placer_.preferred();
    const double max_seconds = seconds_to_measure();
    loop_.measure_potential_winners([&] { return placer_.solve_or_greedy(); }, max_seconds);
    is_cut_short_ = tuner_.seconds() > max_seconds;
    // Candidates that were measured now may be better than the known plan.
    if (tuner_.measured() > 0) placer_.prefer({});
    Placement best = loop_.choose_buildable();
    const double isolated_seconds = placer_.price(best) - placer_.amortized_build_seconds(best);
    std::vector<ContenderDescription> run_off;
    if (is_worth_running()) {
      has_run_ = true;
      try {
        refine_in_context(best);
        run_off = compare_contenders(best, known);
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::OutOfMemory) throw;
        notes_.push_back("the whole plan could not be run on the inputs for tuning: " +
                         std::string(error.what()));
      }
    }
    // Brings prices up to date. Results of the last rounds about other placements no longer change
    // the choice.
    if (has_run_) loop_.restrict_to_measured();
    Placement startup_plan;
    if (wants_startup_plan_ && has_run_) startup_plan = find_startup_plan(best);
    placer_.prefer(best);
    TunedPlacement result{.placement = best,
                          .startup_plan = std::move(startup_plan),
                          .description = placer_.describe(best)};
    add_overhead(result.description);
    result.description.isolated_seconds = isolated_seconds;
    if (!run_off.empty()) {
      result.description.measured_seconds = run_off.front().seconds;
      result.description.contenders = std::move(run_off);
    }
    result.tuning = tuning::describe(tuner_.report());
    if (is_cut_short_) result.tuning.is_stopped = result.tuning.is_out_of_time = true;
    if (is_short_ && shared_ != nullptr) shared_->spend(result.tuning.seconds);
    result.tuning.offered = static_cast<int>(task_.offers.candidates.size());
    for (std::string& note : notes_) result.tuning.notes.push_back(std::move(note));
    return result;
  }

 private:
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
    given_inputs_ = effort.inputs;
    const Placement in_order = placer_.in_order();
    const double seconds = placer_.price(in_order) - placer_.amortized_build_seconds(in_order);
    is_short_ = !in_order.chosen.empty() && seconds < kShortSeconds && !options.is_in_background;
    if (!is_short_ || options.measures_all) return effort;
    if (options.measures_short_here) effort.start_bench = nullptr;
    effort.measures_speed = false;
    // A budget of the user takes precedence.
    if (effort.budget_seconds > 0) return effort;
    shared_ = options.shared;
    double max_seconds = kBudgetOfShort;
    if (shared_ != nullptr) max_seconds = std::min(max_seconds, shared_->allowance_seconds());
    // 0 would mean no limit.
    effort.budget_seconds = std::max(max_seconds, kMinBudget);
    return effort;
  }

  // The time limit of measuring candidates. The rest is reserved for running plans, so that the
  // fastest of those known by then is chosen.
  double seconds_to_measure() const { return (1 - kShareOfRunning) * tuner_.seconds_left(); }

  // --- Running whole plans

  bool is_worth_running() const {
    const bool has_sparse =
        std::any_of(base_.graph.values.begin(), base_.graph.values.end(),
                    [](const Value& value) { return value.sparse.has_value(); });
    return !has_sparse && tuner_.should_continue() && tuner_.measured() > 0;
  }

  RunLimits limits() const {
    RunLimits limits;
    if (is_short_) limits.seconds = kBudgetOfShort / 20;
    limits.seconds = std::min(limits.seconds, tuner_.seconds_left() / 4);
    return limits;
  }

  std::unique_ptr<PlanRunner> runner_of(const Placement& placement) {
    const PhaseTimer::Scope running(tuner_.phases(), "lay out");
    tuner_.report(BindPhase::Packing);
    BuiltPlan built = assembler_.lay_out(PlanAssembler::part_of(base_, placement), placement, {},
                                         placer_.conversion_prices());
    const std::optional<ReleasedWeight> released = assembler_.pack(built);
    TESSERA_CHECK(!released, "who measures has all weights");
    return std::make_unique<PlanRunner>(std::move(built), task_.threads);
  }

  const std::vector<Tensor>& inputs() {
    if (inputs_.empty()) {
      inputs_ = given_inputs_.empty() ? tuning::draw_inputs(base_.graph, 1) : given_inputs_;
    }
    return inputs_;
  }

  void refine_in_context(Placement& best) {
    for (int round = 0; round < kContextRounds && tuner_.should_continue(); ++round) {
      record(best, *runner_of(best));
      // The remaining time is for the run-off.
      if (is_cut_short_) return;
      loop_.measure_potential_winners([&] { return placer_.solve_or_greedy(); });
      const Placement next = loop_.choose_buildable();
      if (next.chosen == best.chosen) return;
      best = next;
    }
    if (tuner_.should_continue()) record(best, *runner_of(best));
  }

  void record(const Placement& placement, PlanRunner& runner) {
    const PhaseTimer::Scope running(tuner_.phases(), "run plans");
    recorder_.record(placement, runner, inputs(), limits(), [&](size_t, size_t done, size_t total) {
      return tuner_.report(BindPhase::TimingSteps, {}, done, total);
    });
  }

  // --- The run-off

  // Adds a contender if its placement is new, can win by its price, and can be run.
  void add(std::vector<Contender>& contenders, const std::string& name, Placement placement,
           std::optional<int> alone = {}) {
    if (placement.chosen.empty()) return;
    const bool is_new = std::none_of(
        contenders.begin(), contenders.end(),
        [&](const Contender& other) { return other.placement.chosen == placement.chosen; });
    const bool can_win =
        contenders.empty() ||
        placer_.price(placement) < kMaxPriceRatio * placer_.price(contenders[0].placement);
    if (!is_new || !can_win || !loop_.is_measured(placement)) return;
    if (!fitter_.fits(placement, placer_)) return;
    if (!loop_.build(placement).empty()) return;
    std::unique_ptr<PlanRunner> runner = runner_of(placement);
    contenders.push_back({.name = name,
                          .placement = std::move(placement),
                          .alone = alone,
                          .runner = std::move(runner)});
  }

  std::vector<Contender> contenders(const Placement& best, const Placement& known) {
    std::vector<Contender> all;
    placer_.exclude({});
    loop_.measure(placer_.in_order());
    loop_.restrict_to_measured();
    add(all, "chosen", best);
    add(all, "known", known);
    add(all, "solved", placer_.solve());
    add(all, "greedy", placer_.greedy());
    add(all, "in order", placer_.in_order());
    std::set<std::pair<int, std::string>> backends;
    for (const Candidate& candidate : base_.offers.candidates) {
      if (candidate.has_kernel()) backends.emplace(candidate.preference, candidate.backend());
    }
    const double share = kShareOfBackendsAlone * tuner_.seconds();
    const double max_seconds = is_short_ ? share : std::max(share, kSecondsOfBackendsAlone);
    const Stopwatch stopwatch;
    for (const auto& [preference, backend] : backends) {
      if (!tuner_.report(BindPhase::Choosing, backend + " alone")) break;
      loop_.measure_potential_winners(
          [&, at = preference] { return single_backend_if_promising(at, all); },
          max_seconds - stopwatch.read().seconds);
      loop_.restrict_to_measured();
      add(all, backend + " alone", placer_.single_backend(preference), preference);
    }
    return all;
  }

  // The placement of one backend alone, by bounds. Empty if even its bound is too far from the
  // first known contender.
  Placement single_backend_if_promising(int preference, const std::vector<Contender>& known) const {
    Placement placement = placer_.single_backend(preference);
    const bool can_win =
        placement.chosen.empty() || known.empty() ||
        placer_.price(placement) < kMaxPriceRatio * placer_.price(known[0].placement);
    return can_win ? placement : Placement{};
  }

  // Runs the contenders in turns and replaces their timings. Returns false, and changes nothing, if
  // it was stopped before all had run.
  bool run(std::span<Contender* const> contenders) {
    const PhaseTimer::Scope running(tuner_.phases(), "run plans");
    std::vector<PlanRunner*> runners;
    for (Contender* contender : contenders) runners.push_back(contender->runner.get());
    const std::vector<Timing> timings =
        time_runs(runners, inputs(), limits(), [&](size_t index, size_t done, size_t total) {
          return tuner_.report(BindPhase::Comparing, contenders[index]->name, done, total);
        });
    if (timings.empty()) return false;
    for (size_t index = 0; index < contenders.size(); ++index) {
      contenders[index]->timing = timings[index];
    }
    return true;
  }

  // Its measured time plus its amortized build time.
  double price_of(const Contender& contender) const {
    return contender.timing.seconds + placer_.amortized_build_seconds(contender.placement);
  }

  // The fastest contender and those near it, in the order of `all`. All must have run.
  std::vector<Contender*> finalists(std::span<Contender> all) const {
    std::vector<Contender*> near;
    for (Contender& contender : all) near.push_back(&contender);
    const auto by_price = [&](const Contender* contender) { return price_of(*contender); };
    std::ranges::stable_sort(near, {}, by_price);
    near.resize(std::min(near.size(), kMaxFinalists));
    const double most = kNearFastest * price_of(*near.front());
    std::erase_if(near, [&](const Contender* one) { return price_of(*one) > most; });
    std::ranges::sort(near);  // by address, which is the order of `all`
    return near;
  }

  // Times the steps of the finalists in context, if that was not done, and adds the placements that
  // are then chosen. Before, only the first contender was chosen with times in context; with such
  // times, placements similar to the other finalists could be as good. Returns whether a contender
  // was added.
  bool add_in_context_choices(std::vector<Contender>& all, int round, double max_seconds) {
    const Stopwatch stopwatch;
    const size_t count = all.size();
    std::vector<std::pair<std::string, int>> alone;
    for (const Contender* finalist : finalists(all)) {
      if (finalist->alone) alone.emplace_back(finalist->name, *finalist->alone);
      if (!recorder_.has(finalist->placement)) record(finalist->placement, *finalist->runner);
    }
    const std::string suffix = ", round " + std::to_string(round + 2);
    const auto add_chosen = [&](const std::string& name, const std::function<Placement()>& choose,
                                std::optional<int> preference) {
      loop_.measure_potential_winners(choose, max_seconds - stopwatch.read().seconds);
      loop_.restrict_to_measured();
      add(all, name + suffix, choose(), preference);
    };
    add_chosen("solved", [&] { return placer_.solve_or_greedy(); }, {});
    for (const auto& [name, preference] : alone) {
      add_chosen(
          name.substr(0, name.find(',')),
          [&, at = preference] { return placer_.single_backend(at); }, preference);
    }
    return all.size() > count;
  }

  // Runs the finalists of `before` against the new contenders. The machine may be faster or slower
  // than before, so the timings of the others in `before` are scaled by the change of the
  // finalists' total time. Returns false if it was stopped before all had run.
  bool run_again(std::span<Contender> before, std::span<Contender> since) {
    std::vector<Contender*> racing = finalists(before);
    const std::vector<Contender*> best = racing;
    for (Contender& contender : since) racing.push_back(&contender);
    const double old_seconds = seconds_of(best);
    if (!run(racing)) return false;
    const double change = seconds_of(best) / old_seconds;
    for (Contender& contender : before) {
      if (std::ranges::find(best, &contender) != best.end()) continue;
      for (double* part :
           {&contender.timing.seconds, &contender.timing.low, &contender.timing.high})
        *part *= change;
    }
    return true;
  }

  static double seconds_of(std::span<Contender* const> contenders) {
    double seconds = 0;
    for (const Contender* contender : contenders) seconds += contender->timing.seconds;
    return seconds;
  }

  void compare_finalists(std::vector<Contender>& all) {
    const double max_seconds = std::max(kShareOfFinals * tuner_.seconds(), kSecondsOfFinals);
    const Stopwatch stopwatch;
    for (int round = 0; round < kFinalRounds && tuner_.should_continue(); ++round) {
      const double seconds_left = max_seconds - stopwatch.read().seconds;
      const size_t count = all.size();
      if (seconds_left <= 0 || !add_in_context_choices(all, round, seconds_left)) return;
      if (run_again(std::span(all).first(count), std::span(all).subspan(count))) continue;
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(count), all.end());
      return;
    }
  }

  // Makes the newest times in context those of the winner, from runs without disturbances: the sum
  // for its steps must be close to its time in the run-off.
  void record_winner(const Contender& winner) {
    const double max_seconds = kMaxPreemptedRatio * winner.timing.seconds;
    for (int trial = 0; trial < kMaxRecordings && tuner_.should_continue(); ++trial) {
      if (recorder_.is_newest(winner.placement) && recorder_.seconds() <= max_seconds) return;
      record(winner.placement, *winner.runner);
    }
  }

  // Stores the plan in the costs, so that later choices by these costs take it.
  void keep(const Placement& placement, const Timing& timing) {
    if (!plan_key_) return;
    costs_.plans[*plan_key_] = {.steps = tuning::planned_steps(task_, placement.chosen),
                                .timing = timing};
  }

  // Sets `best` to the winner and returns the times: the winner first, then the others, fastest
  // first.
  std::vector<ContenderDescription> compare_contenders(Placement& best, const Placement& known) {
    if (!tuner_.should_continue()) return {};
    std::vector<Contender> all = contenders(best, known);
    // Happens if the time was over before all candidates of the choice were measured.
    if (all.empty()) return {};
    std::vector<Contender*> racing;
    for (Contender& contender : all) racing.push_back(&contender);
    if (!run(racing)) return {};
    if (!is_short_) compare_finalists(all);
    const double least = price_of(*std::ranges::min_element(
        all, {}, [&](const Contender& contender) { return price_of(contender); }));
    const auto winner = std::ranges::find_if(
        all, [&](const Contender& contender) { return price_of(contender) <= kNoise * least; });
    record_winner(*winner);
    best = winner->placement;
    keep(best, winner->timing);
    for (const Contender& contender : all) {
      runs_.push_back({contender.placement, contender.timing.seconds});
    }
    std::rotate(all.begin(), winner, winner + 1);
    std::stable_sort(all.begin() + 1, all.end(), [](const auto& left, const auto& right) {
      return left.timing.seconds < right.timing.seconds;
    });
    std::vector<ContenderDescription> described;
    for (const Contender& contender : all) {
      described.push_back(
          {contender.name, contender.timing.seconds, contender.timing.low, contender.timing.high});
    }
    return described;
  }

  // --- The first runs

  // Returns the placement that returns the first result soonest, build time included: one that was
  // run, or the cheapest by measured prices. Empty if that saves little.
  Placement find_startup_plan(const Placement& best) {
    if (placer_.build_seconds(best) < kSlowToBuild) return {};
    if (!tuner_.report(BindPhase::Choosing)) return {};
    prices_.set_runs_per_build(1);
    loop_.measure_potential_winners([&] { return placer_.solve_or_greedy(); },
                                    kShareOfStarting * tuner_.seconds());
    loop_.restrict_to_measured();
    time_on_its_own(placer_.solve());
    const auto first_result_seconds = [&](const PlanRun& run) {
      return run.seconds + placer_.amortized_build_seconds(run.placement);
    };
    const auto soonest = std::ranges::min_element(runs_, {}, first_result_seconds);
    Placement startup_plan;
    if (soonest != runs_.end() &&
        placer_.price(best) - first_result_seconds(*soonest) > kSlowToBuild) {
      startup_plan = soonest->placement;
    }
    prices_.set_runs_per_build(runs_per_build_);
    loop_.restrict_to_measured();
    return startup_plan;
  }

  // Adds the time of `placement` to `runs_`, if it can be built and run.
  void time_on_its_own(const Placement& placement) {
    if (placement.chosen.empty() || !loop_.is_measured(placement)) return;
    if (!loop_.build(placement).empty()) return;
    try {
      const std::unique_ptr<PlanRunner> runner = runner_of(placement);
      PlanRunner* const runners[] = {runner.get()};
      runs_.push_back({placement, time_runs(runners, inputs(), limits()).front().seconds});
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::OutOfMemory) throw;
      notes_.push_back("the plan for the first runs could not be run: " +
                       std::string(error.what()));
    }
  }

  BuiltPlan& base_;
  const tuning::TuningTask& task_;
  PricedOffers& prices_;
  const std::optional<tuning::PlanKey>& plan_key_;
  Placer& placer_;
  BudgetFitter& fitter_;
  PlanAssembler& assembler_;
  tuning::CostTable& costs_;
  bool measures_all_;
  int64_t runs_per_build_;
  bool wants_startup_plan_;
  std::vector<PlanRun> runs_;
  std::vector<Tensor> given_inputs_;
  std::vector<Tensor> inputs_;
  bool is_short_ = false;
  bool has_run_ = false;       // whole plans
  bool is_cut_short_ = false;  // the time for measuring ended
  tuning::SharedCosts* shared_ = nullptr;
  std::vector<std::string> notes_;
  StepRecorder recorder_;
  MeasurementLoop loop_;
  tuning::Tuner& tuner_;  // of `loop_`
};

}  // namespace

TunedPlacement tune_placement(const TuningContext& context, const PricingOptions& options) {
  return PlacementTuner(context, options).run();
}

}  // namespace tessera
