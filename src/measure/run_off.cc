#include "measure/run_off.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/threads/stopwatch.h"
#include "choose/choice.h"
#include "measure/contender_name.h"
#include "measure/race.h"

namespace tessera {
RunOff::RunOff(const TuningContext& context, ChoiceTask task, MeasurementLoop& loop,
               PlanTrials& trials, StepRecorder& recorder)
    : base_(context.base),
      fitter_(context.fitter),
      newest_{.task = std::move(task)},
      constraints_(newest_.task.constraints()),
      loop_(loop),
      tuner_(loop.tuner()),
      trials_(trials),
      recorder_(recorder) {
  constraints_.excluded.clear();
}

std::vector<Contender> RunOff::run(const Placement& best, const Placement& known) {
  add_choices(best, known);
  if (tuner_.should_continue()) add_backends_alone();
  // Happens if the time was over before all candidates of the choice were measured.
  if (all_.empty()) return {};
  std::vector<Contender*> racing;
  for (Contender& contender : all_) racing.push_back(&contender);
  if (!race(racing)) return {};
  if (!trials_.is_short()) compare_finalists();
  record_winner();
  std::vector<Contender> sorted = std::move(all_);
  const auto first = sorted.begin();
  std::rotate(first, first + static_cast<std::ptrdiff_t>(winner_),
              first + static_cast<std::ptrdiff_t>(winner_) + 1);
  std::stable_sort(first + 1, sorted.end(), [](const Contender& left, const Contender& right) {
    return left.timing.seconds < right.timing.seconds;
  });
  return sorted;
}

// --- Contenders

// Adds a contender if its placement is new and can be run. Its kernels must have been checked,
// except those of `unchecked_`.
void RunOff::add(ContenderDescription description, Placement placement, std::optional<int> alone) {
  if (placement.chosen.empty()) return;
  const bool is_new = std::none_of(all_.begin(), all_.end(), [&](const Contender& other) {
    return other.placement.chosen == placement.chosen;
  });
  if (!is_new || !loop_.is_measured(placement, unchecked_)) return;
  if (!fitter_.fits(placement, newest_.task)) return;
  if (!loop_.build(placement).empty()) return;
  std::unique_ptr<PlanRunner> runner = trials_.runner_of(placement, newest_.task);
  description.name = contender_name(description);
  all_.push_back({.description = std::move(description),
                  .placement = std::move(placement),
                  .alone = alone,
                  .runner = std::move(runner)});
}

void RunOff::add_choices(const Placement& best, const Placement& known) {
  const Placement in_order = measured_in_order();
  // If the time is over, its kernels may be unchecked, as they are in binds that do not measure.
  if (!tuner_.should_continue()) unchecked_ = in_order;
  add({.kind = ContenderKind::Chosen}, best);
  add({.kind = ContenderKind::Known}, known);
  const ChoiceTask& task = newest_.task;
  const double max_ratio = tuner_.tuning().contender_max_price_ratio;
  add({.kind = ContenderKind::Solved},
      if_promising(task, newest_.solution.found.placement, max_ratio));
  add({.kind = ContenderKind::Greedy}, if_promising(task, greedy(task), max_ratio));
  // It runs whatever its price, so that measuring never makes a model slower.
  add({.kind = ContenderKind::InOrder}, in_order);
  for (Contender& one : all_) one.is_in_order = one.placement.chosen == in_order.chosen;
}

// The choice without prices, once its kernels were measured. If some are refused, it is made again.
Placement RunOff::measured_in_order() {
  Placement in_order;
  for (int trial = 0; trial < tuner_.tuning().in_order_max_trials; ++trial) {
    Placement next = tessera::in_order(newest_.task.with(constraints_));
    if (next.chosen == in_order.chosen) break;
    in_order = std::move(next);
    loop_.measure(in_order);
    restrict_to_measured();
  }
  restrict_to_measured();
  return in_order;
}

void RunOff::restrict_to_measured() { newest_ = loop_.restrict_to_measured(constraints_); }

namespace {

// The backends that may have plans of their own, by preference. A backend that only fuses nodes
// between other kernels has none.
std::set<std::pair<int, std::string>> backends_with_plans(
    const std::vector<Candidate>& candidates) {
  std::set<std::pair<int, std::string>> backends;
  for (const Candidate& candidate : candidates) {
    const bool is_one_pass = (candidate.flags & TESSERA_CANDIDATE_ONE_PASS) != 0;
    if (candidate.has_kernel() && !is_one_pass) {
      backends.emplace(candidate.preference, candidate.backend());
    }
  }
  return backends;
}

bool offers_regions(const std::vector<Candidate>& candidates, int preference) {
  return std::any_of(candidates.begin(), candidates.end(), [&](const Candidate& candidate) {
    return candidate.preference == preference && candidate.is_measured_only();
  });
}

}  // namespace

void RunOff::add_backends_alone() {
  const std::vector<Candidate>& candidates = base_.offers.candidates;
  const std::set<std::pair<int, std::string>> backends = backends_with_plans(candidates);
  const MeasureTuning& tuning = tuner_.tuning();
  const double share = tuning.alone_share * tuner_.seconds();
  const double max_seconds = trials_.is_short() ? share : std::max(share, tuning.alone_seconds);
  Stopwatch stopwatch;
  const auto add_best = [&](const ContenderDescription& description, int preference,
                            Placement (*choose)(const ChoiceTask& task, int preference)) {
    const auto promising = [&](const ChoiceTask& task) {
      return Choice{.placement =
                        if_promising(task, choose(task, preference), tuning.alone_max_bound_ratio)};
    };
    loop_.measure_potential_winners(constraints_, promising,
                                    max_seconds - stopwatch.read().seconds);
    restrict_to_measured();
    add(description,
        if_promising(newest_.task, choose(newest_.task, preference),
                     tuning.contender_max_price_ratio),
        preference);
  };
  for (const auto& [preference, backend] : backends) {
    if (!offers_regions(candidates, preference)) continue;
    const ContenderDescription unsplit{.kind = ContenderKind::Unsplit, .backend = backend};
    if (!tuner_.report(BindPhase::Choosing, contender_name(unsplit))) return;
    // Parts are measured alone, each with all caches for itself, so the whole may be faster.
    add_best(unsplit, preference, tessera::unsplit);
  }
  stopwatch = Stopwatch();
  for (const auto& [preference, backend] : backends) {
    const ContenderDescription alone{.kind = ContenderKind::Alone, .backend = backend};
    if (!tuner_.report(BindPhase::Choosing, contender_name(alone))) return;
    add_best(alone, preference, single_backend);
  }
}

// Empty if the price of `placement` in `task` is above that of the first contender by more than
// this factor.
Placement RunOff::if_promising(const ChoiceTask& task, Placement placement,
                               double max_ratio) const {
  const bool can_win = placement.chosen.empty() || all_.empty() ||
                       price(task, placement) < max_ratio * price(task, all_[0].placement);
  return can_win ? std::move(placement) : Placement{};
}

// Times the steps of the finalists in context, if that was not done, and adds the placements that
// are then chosen. Before, only the first contender was chosen with times in context; with such
// times, placements similar to the other finalists could be as good. Returns whether a contender
// was added.
bool RunOff::add_in_context_choices(int round, double max_seconds) {
  const Stopwatch stopwatch;
  const size_t count = all_.size();
  std::vector<std::pair<ContenderDescription, int>> alone;
  for (const Contender* finalist : finalists()) {
    if (finalist->alone) alone.emplace_back(finalist->description, *finalist->alone);
    if (!recorder_.has(finalist->placement)) trials_.record(finalist->placement, *finalist->runner);
  }
  const auto measure = [&](const ChooseForTask& choose) {
    loop_.measure_potential_winners(constraints_, choose, max_seconds - stopwatch.read().seconds);
    restrict_to_measured();
  };
  const auto add_chosen = [&](ContenderDescription description, Placement placement,
                              std::optional<int> preference) {
    description.round = round + 2;
    add(std::move(description),
        if_promising(newest_.task, std::move(placement), tuner_.tuning().contender_max_price_ratio),
        preference);
  };
  measure(solve_or_greedy);
  add_chosen({.kind = ContenderKind::Solved}, solved_or_greedy(newest_.task, newest_.solution), {});
  for (const auto& [description, preference] : alone) {
    measure([at = preference](const ChoiceTask& task) {
      return Choice{.placement = single_backend(task, at)};
    });
    add_chosen(description, single_backend(newest_.task, preference), preference);
  }
  return all_.size() > count;
}

// --- Races

// Its measured time plus its amortized build time.
double RunOff::price_of(const Contender& contender) const {
  return contender.timing.seconds + amortized_build_seconds(newest_.task, contender.placement);
}

// Replaces the timings of `racing`, and sets the winner. Returns false, and changes nothing, if it
// was stopped before all had run.
bool RunOff::race(std::span<Contender* const> racing) {
  std::vector<PlanRunner*> runners;
  std::vector<TuneProgress> reports;
  std::vector<double> extra_seconds;
  for (const Contender* contender : racing) {
    runners.push_back(contender->runner.get());
    reports.push_back({.what = contender->description.name, .contender = contender->description});
    extra_seconds.push_back(amortized_build_seconds(newest_.task, contender->placement));
  }
  const std::optional<tuning::Race> race = trials_.race(runners, reports, std::move(extra_seconds));
  if (!race) return false;
  const std::vector<tuning::Timing> timings = race->timings();
  for (size_t index = 0; index < racing.size(); ++index) racing[index]->timing = timings[index];
  winner_ = static_cast<size_t>(racing[race->winner()] - all_.data());
  return true;
}

// The winner and those near it, in their order. All must have run.
std::vector<Contender*> RunOff::finalists() {
  const Contender* const winner = &all_[winner_];
  std::vector<Contender*> near;
  for (Contender& contender : all_) near.push_back(&contender);
  const auto by_price = [&](const Contender* contender) {
    return contender == winner ? 0 : price_of(*contender);
  };
  std::ranges::stable_sort(near, {}, by_price);
  near.resize(std::min(near.size(), tuner_.tuning().max_finalists));
  const double most = tuner_.tuning().finalist_max_ratio * price_of(*winner);
  std::erase_if(near, [&](const Contender* one) { return price_of(*one) > most; });
  std::ranges::sort(near);  // by address, which is their order
  return near;
}

// Races the winner of the first `known_count` contenders against the others, which are new. The
// machine may be faster or slower than before, so the timings of those that do not race are scaled
// by the change of the winner's. Returns false if it was stopped before all had run.
bool RunOff::race_against_winner(size_t known_count) {
  const size_t old_winner = winner_;
  const double old_seconds = all_[old_winner].timing.seconds;
  std::vector<Contender*> racing = {&all_[old_winner]};
  for (Contender& contender : std::span(all_).subspan(known_count)) racing.push_back(&contender);
  if (!race(racing)) return false;
  const double change = all_[old_winner].timing.seconds / old_seconds;
  for (size_t index = 0; index < known_count; ++index) {
    if (index == old_winner) continue;
    tuning::Timing& timing = all_[index].timing;
    for (double* part : {&timing.seconds, &timing.low, &timing.high}) *part *= change;
  }
  return true;
}

void RunOff::compare_finalists() {
  const MeasureTuning& tuning = tuner_.tuning();
  const double max_seconds =
      std::max(tuning.finals_share * tuner_.seconds(), tuning.finals_seconds);
  const Stopwatch stopwatch;
  for (int round = 0; round < tuning.final_rounds && tuner_.should_continue(); ++round) {
    const double seconds_left = max_seconds - stopwatch.read().seconds;
    const size_t count = all_.size();
    const size_t old_winner = winner_;
    if (seconds_left <= 0 || !add_in_context_choices(round, seconds_left)) return;
    if (!race_against_winner(count)) {
      all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(count), all_.end());
      return;
    }
    // Nothing noticeably better was found nearby.
    if (price_of(all_[winner_]) > tuning.final_round_gain * price_of(all_[old_winner])) return;
  }
}

// Makes the newest times in context those of the winner, from runs without disturbances: the sum
// for its steps must be close to its time in the race.
void RunOff::record_winner() {
  const MeasureTuning& tuning = tuner_.tuning();
  const Contender& winner = all_[winner_];
  const double max_seconds = tuning.recording_max_ratio * winner.timing.seconds;
  for (int trial = 0; trial < tuning.max_recordings && tuner_.should_continue(); ++trial) {
    if (recorder_.is_newest(winner.placement) && recorder_.seconds() <= max_seconds) return;
    trials_.record(winner.placement, *winner.runner);
  }
}

}  // namespace tessera
