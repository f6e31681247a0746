#include "measure/tune.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/errors/check.h"
#include "base/memory/memory.h"
#include "measure/capture.h"
#include "measure/measure_group.h"
#include "measure/phase_timer.h"
#include "measure/quiet.h"
#include "microbench/group_bench.h"
#include "price/bounds.h"
#include "price/prices.h"
#include "tessera/error.h"

namespace tessera::tuning {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string ops_text(const Graph& group) {
  std::string text;
  for (const Node& node : group.nodes) text += (text.empty() ? "" : "+") + node.op;
  return text;
}

std::string microseconds_text(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f \xc2\xb5s", seconds * 1e6);
  return text.data();
}

bool has_weights(const Graph& group) {
  return std::any_of(group.values.begin(), group.values.end(), [](const Value& value) {
    return value.is_constant() && value.constant.bytes() > TESSERA_SMALL_CONSTANT_BYTES;
  });
}

// A group and those of its candidates that the table lacks.
struct PendingGroup {
  const TuneGroup* group = nullptr;
  std::vector<int> candidates;
  std::vector<ValueId> values;  // of the whole graph, to be captured
  int64_t bytes = 0;            // of these
};

}  // namespace

struct Tuner::State {
  State(const TuningTask& task, const std::vector<TuneGroup>& groups,
        const std::vector<std::optional<CostKey>>& keys,
        std::vector<std::shared_ptr<const Plugin>> plugins, TuneOptions options, CostTable& table)
      : task_(task),
        groups_(groups),
        keys_(keys),
        options_(std::move(options)),
        table_(table),
        own_bench_(std::move(plugins), task.registry, task.threads),
        weights_(weights_between_runs(task.graph)),
        speed_(assumed_speed()),
        cases_(task, options_.denormals, phases_),
        timed_own_bench_(make_timed_bench(own_bench_, phases_)) {
    const double budget = options_.budget_seconds;
    const double min_budget = options_.tuning.min_budget_to_wait_seconds;
    if (options_.only_checks || (budget > 0 && budget < min_budget)) return;
    quiet_.emplace(task.threads, QuietWaiter::this_system([this] {
                     return bench_ == nullptr ? -1 : bench_->process_id();
                   }),
                   options_.tuning);
  }

  bool measure(std::span<const int> candidates, std::span<const NeededConversion> conversions,
               double max_seconds, bool skips_hopeless) {
    skips_hopeless_ = skips_hopeless;
    is_paused_ = false;
    pause_at_seconds_ = seconds_since(start_) + max_seconds;
    const std::vector<PendingGroup> pending = collect_pending(candidates);
    std::vector<const NeededConversion*> unknown;
    for (const NeededConversion& conversion : conversions) {
      if (table_.conversions.contains(conversion.cost_key)) {
        ++report_.known;
      } else {
        unknown.push_back(&conversion);
      }
    }
    size_t wanted = unknown.size();
    for (const PendingGroup& group : pending) wanted += group.candidates.size();
    if (wanted == 0) return should_continue();
    total_ = done_ + wanted;
    may_grow_ = candidates.size() < task_.offers.candidates.size();
    begin();
    run_groups(pending);
    run_conversions(unknown);
    return should_continue();
  }

  double seconds_left() const {
    if (options_.budget_seconds <= 0) return std::numeric_limits<double>::infinity();
    return options_.budget_seconds - seconds_since(start_);
  }

  const MeasureTuning& tuning() const { return options_.tuning; }
  double seconds() const { return seconds_since(start_); }
  int measured() const { return report_.measured; }

  TuneReport report() const {
    TuneReport report = report_;
    report.seconds = seconds();
    report.phases = phases_.seconds();
    report.peak_bytes = peak_resident_bytes() + (bench_ == nullptr ? 0 : bench_->peak_bytes());
    if (seconds_left() <= 0 && !is_cancelled_) report.is_stopped = report.is_out_of_time = true;
    return report;
  }

  void begin_undisturbed() {
    if (quiet_) quiet_->begin();
  }

  bool should_repeat() {
    if (!quiet_) return false;
    const PhaseTimer::Scope running(phases_, "wait");
    return quiet_->should_repeat(options_.tuning.wait_share_of_time_left * seconds_left(), [&] {
      return report(
          {.what = "waiting until other processes compute less", .phase = BindPhase::Waiting},
          seconds_left());
    });
  }

  bool is_cancelled() const { return is_cancelled_; }
  bool should_continue() const { return !report_.is_stopped && !has_failed_; }
  PhaseTimer& phases() { return phases_; }

  bool report(TuneProgress progress, double max_seconds) {
    if (!options_.on_progress) return true;
    progress.can_stop = true;
    if (progress.phase == BindPhase::Starting) progress.quote = options_.quote;
    progress.seconds_left =
        remaining_.estimate(progress.phase, progress.done, progress.total, seconds());
    if (std::isfinite(max_seconds)) progress.seconds_allowed = std::max(0.0, max_seconds);
    if (!options_.on_progress(progress)) is_cancelled_ = report_.is_stopped = true;
    return !is_cancelled_;
  }

 private:
  // The bench for everything that it can measure.
  Bench& bench() { return bench_ != nullptr ? *timed_bench_ : *timed_own_bench_; }

  // Prepares for the first measurement.
  void begin() {
    table_.machine = this_machine();
    const PhaseTimer::Scope running(phases_, "start");
    if (!has_begun_) report({.phase = BindPhase::Starting}, seconds_left());
    if (!has_begun_ && options_.start_bench) bench_ = options_.start_bench();
    if (!has_begun_ && bench_ != nullptr) timed_bench_ = make_timed_bench(*bench_, phases_);
    has_begun_ = true;
    const bool may_measure_speed = options_.measures_speed && !options_.only_checks;
    if (!has_speed_ && total_ >= options_.tuning.candidates_to_measure_speed && may_measure_speed) {
      speed_ = measure_speed();
      has_speed_ = true;
    }
  }

  // The relevant state of weights for this graph: without weights, nothing is cold.
  Weights weights_of(const TuneGroup& group) const {
    return has_weights(group.graph) ? weights_ : Weights::Warm;
  }

  bool is_known(const CostKey& key, Weights weights) const {
    const auto found = table_.kernels.find(key);
    if (found == table_.kernels.end()) return false;
    const Cost& cost = found->second;
    if (!cost.refusal.empty()) return true;
    if (!cost.is_verified_here) return false;
    return options_.only_checks || (weights == Weights::Cold ? cost.cold : cost.warm).has_value();
  }

  // By group, in their order.
  std::vector<PendingGroup> collect_pending(std::span<const int> candidates) {
    std::vector<bool> is_wanted(task_.offers.candidates.size(), false);
    for (const int index : candidates) is_wanted[static_cast<size_t>(index)] = true;
    std::vector<PendingGroup> all;
    std::set<CostKey> seen;
    for (const TuneGroup& group : groups_) {
      if (!group.text) continue;
      PendingGroup pending{.group = &group};
      for (const int index : group.candidates) {
        if (!is_wanted[static_cast<size_t>(index)] || !keys_[static_cast<size_t>(index)]) continue;
        const CostKey& key = *keys_[static_cast<size_t>(index)];
        if (is_known(key, weights_of(group)) || !seen.insert(key).second) {
          ++report_.known;
          continue;
        }
        const Candidate& candidate = task_.offers.candidates[static_cast<size_t>(index)];
        if (candidate.build_seconds > seconds_left()) continue;
        pending.candidates.push_back(index);
      }
      if (pending.candidates.empty()) continue;
      add_values(pending);
      all.push_back(std::move(pending));
    }
    return all;
  }

  void add_values(PendingGroup& pending) const {
    const Graph& group = pending.group->graph;
    for (const auto* ids : {&group.inputs, &group.outputs}) {
      for (const ValueId id : *ids) {
        pending.values.push_back(by_name().at(group[id].name));
        pending.bytes += type_bytes(group[id].type).value_or(0);
      }
    }
  }

  const std::map<std::string, ValueId>& by_name() const {
    if (by_name_.empty()) {
      for (size_t index = 0; index < task_.graph.values.size(); ++index) {
        by_name_.emplace(task_.graph.values[index].name, ValueId{static_cast<int32_t>(index)});
      }
    }
    return by_name_;
  }

  // Captures the values of all groups if they fit into memory together.
  void capture_all() {
    if (has_tried_all_) return;
    has_tried_all_ = true;
    int64_t bytes = 0;
    std::set<ValueId> seen;
    std::vector<ValueId> wanted;
    for (const TuneGroup& group : groups_) {
      if (!group.text) continue;
      PendingGroup values{.group = &group};
      add_values(values);
      for (const ValueId id : values.values) {
        if (!seen.insert(id).second) continue;
        wanted.push_back(id);
        bytes += type_bytes(task_.graph[id].type).value_or(0);
      }
    }
    if (bytes <= limited_by_memory(options_.capture_bytes, options_.tuning))
      all_values_ = capture(wanted);
  }

  // nullopt if the reference cannot run or was stopped.
  std::optional<CapturedValues> capture(std::span<const ValueId> wanted) {
    const PhaseTimer::Scope running(phases_, "reference");
    const bool are_drawn = options_.inputs.empty();
    try {
      if (!capture_) {
        capture_.emplace(task_.graph, task_.registry, task_.threads,
                         are_drawn ? draw_inputs(task_.graph, options_.seed) : options_.inputs,
                         options_.denormals);
      }
      return capture_->run(wanted, [&](const std::string& op, size_t done, size_t total) {
        return report({.what = op, .done = done, .total = total, .phase = BindPhase::Reference},
                      kNoLimit);
      });
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::OutOfMemory) {
        note_shortage("this model", error.what());
        has_failed_ = true;
        return std::nullopt;
      }
      report_.notes.push_back(
          std::string("the reference could not run on ") +
          (are_drawn ? "random inputs; give real ones to tune with" : "these inputs") + ": " +
          error.what());
      has_failed_ = true;
      return std::nullopt;
    }
  }

  // Runs groups in order, as many at a time as fit their captured values into the limit.
  void run_groups(const std::vector<PendingGroup>& pending) {
    if (pending.empty()) return;
    capture_all();
    size_t begin = 0;
    while (begin < pending.size() && should_continue() && !is_paused_) {
      size_t end = begin;
      int64_t bytes = 0;
      std::vector<ValueId> wanted;
      while (end < pending.size() &&
             (end == begin || all_values_ ||
              bytes + pending[end].bytes <=
                  limited_by_memory(options_.capture_bytes, options_.tuning))) {
        bytes += pending[end].bytes;
        wanted.insert(wanted.end(), pending[end].values.begin(), pending[end].values.end());
        ++end;
      }
      std::optional<CapturedValues> some;
      if (!all_values_) {
        some = capture(wanted);
        if (!some) return;
      }
      const CapturedValues& values = all_values_ ? *all_values_ : *some;
      for (; begin < end && goes_on(); ++begin) run_if_it_fits(pending[begin], values);
    }
  }

  void note_shortage(const std::string& what, const std::string& reason) {
    report_.notes.push_back(what + " is not measured, because memory does not suffice: " + reason);
    if (options_.log != nullptr) options_.log->warn(report_.notes.back());
  }

  // The system would end a process that takes more memory than a group of processes may have, so
  // groups that need too much are not begun.
  void run_if_it_fits(const PendingGroup& pending, const CapturedValues& values) {
    const Graph& group = pending.group->graph;
    std::string shortage = explain_shortage(group, pending.bytes, options_.tuning);
    try {
      if (shortage.empty()) run_group(pending, values);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::OutOfMemory) throw;
      shortage = error.what();
    } catch (const std::bad_alloc&) {
      shortage = "an allocation failed";
    }
    if (!shortage.empty()) note_shortage(ops_text(group), shortage);
  }

  GroupCase make_case(const PendingGroup& pending, const CapturedValues& values) {
    const Graph& group = pending.group->graph;
    const auto values_of = [&](const std::vector<ValueId>& ids) {
      std::vector<Tensor> found;
      for (const ValueId id : ids) found.push_back(values.at(by_name().at(group[id].name)));
      return found;
    };
    return cases_.make(group, values_of(group.inputs), values_of(group.outputs));
  }

  void load(const GroupCase& group, const PendingGroup& pending) {
    timed_own_bench_->load(group);
    for (const int index : pending.candidates) {
      own_bench_.offer(task_.offers.candidates[static_cast<size_t>(index)], task_.graph);
    }
    if (bench_ != nullptr) timed_bench_->load(group);
  }

  int64_t buffer_bytes(const Candidate& candidate) const {
    int64_t bytes = candidate.workspace_bytes + candidate.library_bytes;
    const auto add = [&](ValueId value) {
      bytes += type_bytes(task_.graph[value].type).value_or(0);
    };
    for (const CandidateInput& port : candidate.inputs) add(port.value);
    for (const CandidateOutput& port : candidate.outputs) add(port.value);
    return bytes;
  }

  // The best time in the table for the group, by any candidate.
  double best_known(const TuneGroup& group) const {
    double best = std::numeric_limits<double>::infinity();
    for (const int index : group.candidates) {
      const std::optional<CostKey>& key = keys_[static_cast<size_t>(index)];
      const auto found = key ? table_.kernels.find(*key) : table_.kernels.end();
      if (found == table_.kernels.end() || !found->second.refusal.empty()) continue;
      const Cost& cost = found->second;
      const auto& timing = weights_of(group) == Weights::Cold ? cost.cold : cost.warm;
      if (timing) best = std::min(best, timing->seconds);
    }
    return best;
  }

  // Candidates for all threads come first: single-threaded ones are tried only if they could win.
  std::vector<Trial> make_trials(const PendingGroup& pending) {
    trial_candidates_.clear();
    std::vector<int> order = pending.candidates;
    const auto threads = [&](int index) { return bench_id(task_, index).threads; };
    std::ranges::stable_sort(order, std::greater<>(), threads);
    const bool shares_well = has_product(pending.group->graph, task_.registry);
    const bool has_others = std::ranges::any_of(pending.group->candidates,
                                                [&](int index) { return threads(index) > 1; });
    std::vector<Trial> trials;
    for (const int index : order) {
      const Candidate& candidate = task_.offers.candidates[static_cast<size_t>(index)];
      Trial& trial = trials.emplace_back();
      trial.id = bench_id(task_, index);
      trial.bench = &bench();
      trial.fallback = bench_ != nullptr ? timed_own_bench_.get() : nullptr;
      trial.bytes = buffer_bytes(candidate);
      trial.build_limit_seconds = build_limit(kBuildSeconds, candidate.build_seconds);
      trial_candidates_.push_back(index);
      if (options_.only_checks || !skips_hopeless_) continue;
      trial.is_single_threaded = candidate.threads == 1 && has_others && shares_well;
      trial.bound_seconds = bound_seconds(pending.group->graph, task_.registry, speed_,
                                          trial.id.threads, task_.precision, task_.tuning);
    }
    return trials;
  }

  void run_group(const PendingGroup& pending, const CapturedValues& values) {
    const std::string ops = ops_text(pending.group->graph);
    done_in_group_ = 0;
    if (!report_measuring(ops, 0)) return stop();
    GroupCase group = make_case(pending, values);
    load(group, pending);
    std::vector<Trial> trials;
    const MeasureLimits limits{
        .weights = weights_of(*pending.group),
        .candidate_timeout_seconds = options_.candidate_timeout_seconds,
        .buffer_bytes = limited_by_memory(options_.buffer_bytes, options_.tuning),
        .only_checks = options_.only_checks,
        .add_limits =
            [&, has_tried = false]() mutable {
              if (std::exchange(has_tried, true)) return false;
              if (!cases_.add_limits(group)) return false;
              load(group, pending);
              return true;
            },
        .tuning = options_.tuning};
    const TrialWatcher watcher = [&](const Trial& trial, double best) {
      done_in_group_ = std::max(done_in_group_, count_done(trials));
      return report_measuring(ops + " " + trial.id.backend +
                                  (trial.id.algorithm.empty() ? "" : ":" + trial.id.algorithm),
                              best);
    };
    do {
      trials = make_trials(pending);
      begin_undisturbed();
      if (!measure_group(trials, limits, best_known(*pending.group), watcher)) {
        stop();
        break;
      }
    } while (should_repeat());
    for (size_t index = 0; index < trials.size(); ++index) {
      record(trials[index], trial_candidates_[index], ops);
    }
    done_ += pending.candidates.size();
  }

  void record(const Trial& trial, int candidate, const std::string& ops) {
    if (!trial.cost) return;
    const CostKey& key = *keys_[static_cast<size_t>(candidate)];
    ++report_.measured;
    const bool is_refused = !trial.cost->refusal.empty();
    if (is_refused && !is_unsupported_layout(task_, candidate, *trial.cost)) ++report_.refused;
    const auto& timing = trial.cost->cold ? trial.cost->cold : trial.cost->warm;
    const bool is_view = trial.cost->build_seconds == 0 && timing && timing->seconds == 0;
    if (timing && !is_view &&
        timing->high < options_.tuning.anomalous_bound_share * trial.bound_seconds) {
      report_.notes.push_back(ops + " by " + key.candidate.backend + ":" + key.candidate.algorithm +
                              " took " + microseconds_text(timing->seconds) + ", less than the " +
                              microseconds_text(trial.bound_seconds) +
                              ", the estimated minimum for its work");
    }
    CostTable found;
    found.kernels.emplace(key, *trial.cost);
    merge(table_, found);
  }

  void run_conversions(const std::vector<const NeededConversion*>& unknown) {
    for (const NeededConversion* needed : unknown) {
      const NeededConversion& conversion = *needed;
      if (!goes_on()) return;
      done_in_group_ = 0;
      if (!report_measuring(conversion.key.from + " to " + conversion.key.to, 0)) {
        stop();
        return;
      }
      table_.conversions[conversion.cost_key] =
          measure_conversion(bench(), conversion.key, conversion.bytes, options_.tuning);
      if (!table_.conversions[conversion.cost_key].refusal.empty()) ++report_.refused;
      ++report_.measured;
      ++done_;
    }
  }

  bool goes_on() const { return !report_.is_stopped && !is_paused_; }
  void stop() {
    if (!is_paused_) report_.is_stopped = true;
  }

  // Building and checking count as half of a candidate, timing as the other half.
  static size_t count_done(std::span<const Trial> trials) {
    size_t halves = 0;
    for (const Trial& trial : trials) {
      halves += trial.is_finished ? 2 : trial.is_begun ? 1 : 0;
    }
    return std::min(halves / 2, trials.size() - 1);
  }

  bool report_measuring(const std::string& what, double best_seconds) {
    if (seconds_left() <= 0) {
      report_.is_out_of_time = true;
      return false;
    }
    if (seconds_since(start_) > pause_at_seconds_) {
      is_paused_ = true;
      return false;
    }
    return report({.what = what,
                   .done = done_ + done_in_group_,
                   .total = total_,
                   .best_seconds = best_seconds,
                   .phase = options_.only_checks ? BindPhase::Checking : BindPhase::Measuring,
                   .may_grow = may_grow_},
                  std::min(seconds_left(), pause_at_seconds_ - seconds()));
  }

  const TuningTask& task_;
  const std::vector<TuneGroup>& groups_;
  const std::vector<std::optional<CostKey>>& keys_;
  const TuneOptions options_;
  CostTable& table_;
  GroupBench own_bench_;
  std::unique_ptr<Bench> bench_;
  Weights weights_;
  ProcessorSpeed speed_;
  PhaseTimer phases_;
  GroupCases cases_;
  std::unique_ptr<Bench> timed_bench_;
  std::unique_ptr<Bench> timed_own_bench_;
  std::optional<QuietWaiter> quiet_;  // nullopt if there is no time to wait
  bool has_speed_ = false;            // measured, not assumed
  bool has_begun_ = false;
  std::optional<Capture> capture_;
  bool has_tried_all_ = false;
  bool has_failed_ = false;                   // the reference could not run
  std::optional<CapturedValues> all_values_;  // of all groups, if they fit
  mutable std::map<std::string, ValueId> by_name_;
  std::vector<int> trial_candidates_;
  TuneReport report_;
  bool is_cancelled_ = false;  // by the progress callback
  Clock::time_point start_ = Clock::now();
  bool is_paused_ = false;  // the limit of one call of measure() is reached
  double pause_at_seconds_ = std::numeric_limits<double>::infinity();
  size_t done_ = 0;
  size_t done_in_group_ = 0;
  size_t total_ = 0;
  bool may_grow_ = false;       // further requests may follow
  bool skips_hopeless_ = true;  // candidates whose bound exceeds the best time
  RemainingTime remaining_;
};

Tuner::Tuner(const TuningTask& task, const std::vector<TuneGroup>& groups,
             const std::vector<std::optional<CostKey>>& keys,
             std::vector<std::shared_ptr<const Plugin>> plugins, TuneOptions options,
             CostTable& table)
    : state_(std::make_unique<State>(task, groups, keys, std::move(plugins), std::move(options),
                                     table)) {}
Tuner::~Tuner() = default;

bool Tuner::measure(std::span<const int> candidates, std::span<const NeededConversion> conversions,
                    double max_seconds) {
  return state_->measure(candidates, conversions, max_seconds, true);
}

bool Tuner::measure_even_hopeless(std::span<const int> candidates) {
  return state_->measure(candidates, {}, kNoLimit, false);
}

bool Tuner::should_continue() const { return state_->should_continue() && seconds_left() > 0; }
bool Tuner::is_cancelled() const { return state_->is_cancelled(); }
double Tuner::seconds_left() const { return state_->seconds_left(); }
const MeasureTuning& Tuner::tuning() const { return state_->tuning(); }
double Tuner::seconds() const { return state_->seconds(); }
int Tuner::measured() const { return state_->measured(); }
TuneReport Tuner::report() const { return state_->report(); }
PhaseTimer& Tuner::phases() { return state_->phases(); }
void Tuner::begin_undisturbed() { state_->begin_undisturbed(); }
bool Tuner::should_repeat() { return state_->should_repeat(); }

bool Tuner::report(TuneProgress progress) {
  // Among the activities of others, only runs of plans are shortened when time runs out.
  const BindPhase phase = progress.phase;
  const bool is_bounded = phase == BindPhase::Starting || phase == BindPhase::TimingSteps ||
                          phase == BindPhase::Comparing;
  return state_->report(std::move(progress), is_bounded ? state_->seconds_left()
                                                        : std::numeric_limits<double>::infinity());
}

TuningDescription describe(TuneReport report) {
  return {.measured = report.measured,
          .known = report.known,
          .refused = report.refused,
          .is_stopped = report.is_stopped,
          .is_out_of_time = report.is_out_of_time,
          .seconds = report.seconds,
          .peak_bytes = report.peak_bytes,
          .phases = std::move(report.phases),
          .notes = std::move(report.notes)};
}

}  // namespace tessera::tuning
