#include "tune/tune.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <limits>
#include <set>
#include <utility>

#include "base/check.h"
#include "tessera/error.h"
#include "tune/bounds.h"
#include "tune/capture.h"
#include "tune/group_bench.h"
#include "tune/measure_group.h"

namespace tessera::tuning {
namespace {

using Clock = std::chrono::steady_clock;

// From so many candidates on, measuring the processor's speed pays for itself.
constexpr size_t kManyCandidates = 40;

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
  std::snprintf(text.data(), text.size(), "%.1f us", seconds * 1e6);
  return text.data();
}

bool has_weights(const Graph& group) {
  return std::any_of(group.values.begin(), group.values.end(), [](const Value& value) {
    return value.is_constant() && value.constant.bytes() > TESSERA_SMALL_CONSTANT_BYTES;
  });
}

// A group with those of its candidates that the table does not know.
struct PendingGroup {
  const TuneGroup* group = nullptr;
  std::vector<int> candidates;
  std::vector<ValueId> values;  // of the whole graph, whose elements are wanted
  int64_t bytes = 0;            // of these
};

class Tuner {
 public:
  Tuner(const Subject& subject, std::vector<std::shared_ptr<const Plugin>> plugins,
        const TuneOptions& options, CostTable& table)
      : subject_(subject),
        options_(options),
        table_(table),
        own_bench_(std::move(plugins), subject.registry, subject.threads),
        pool_(subject.threads),
        weights_(weights_between_runs(subject.graph)),
        groups_(collect_groups(subject)),
        keys_(cost_keys(subject, groups_)) {
    collect_pending();
  }

  TuneReport run() {
    start_ = Clock::now();
    if (total_ > 0) {
      table_.machine = this_machine();
      speed_ = total_ >= kManyCandidates ? measure_speed() : assumed_speed();
      run_groups();
      run_conversions();
    }
    report_.seconds = seconds_since(start_);
    return std::move(report_);
  }

 private:
  // The field of a cost that counts for this graph: without weights there is nothing cold.
  Weights weights_of(const TuneGroup& group) const {
    return has_weights(group.graph) ? weights_ : Weights::Warm;
  }

  bool is_known(const CostKey& key, Weights weights) const {
    const auto found = table_.kernels.find(key);
    if (found == table_.kernels.end()) return false;
    const Cost& cost = found->second;
    return !cost.refusal.empty() || (weights == Weights::Cold ? cost.cold : cost.warm).has_value();
  }

  void collect_pending() {
    std::set<CostKey> seen;
    for (const TuneGroup& group : groups_) {
      if (!group.text) continue;
      PendingGroup pending{.group = &group};
      for (const int index : group.candidates) {
        const CostKey& key = *keys_[static_cast<size_t>(index)];
        if (is_known(key, weights_of(group)) || !seen.insert(key).second) {
          ++report_.known;
          continue;
        }
        pending.candidates.push_back(index);
      }
      if (pending.candidates.empty()) continue;
      total_ += pending.candidates.size();
      add_values(pending);
      pending_.push_back(std::move(pending));
    }
    if (options_.only_checks) return;
    for (NeededConversion& conversion : needed_conversions(subject_)) {
      if (table_.conversions.contains(conversion.cost_key)) {
        ++report_.known;
      } else {
        conversions_.push_back(std::move(conversion));
      }
    }
    total_ += conversions_.size();
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
      for (size_t index = 0; index < subject_.graph.values.size(); ++index) {
        by_name_.emplace(subject_.graph.values[index].name, ValueId{static_cast<int32_t>(index)});
      }
    }
    return by_name_;
  }

  // Groups in order, as many at a time as their true values fit into what may be kept.
  void run_groups() {
    if (pending_.empty()) return;
    const bool are_drawn = options_.inputs.empty();
    Capture capture(subject_.graph, subject_.registry, subject_.threads,
                    are_drawn ? draw_inputs(subject_.graph, options_.seed) : options_.inputs);
    size_t begin = 0;
    while (begin < pending_.size() && !report_.is_stopped) {
      size_t end = begin;
      int64_t bytes = 0;
      std::vector<ValueId> wanted;
      while (end < pending_.size() &&
             (end == begin || bytes + pending_[end].bytes <= options_.capture_bytes)) {
        bytes += pending_[end].bytes;
        wanted.insert(wanted.end(), pending_[end].values.begin(), pending_[end].values.end());
        ++end;
      }
      CapturedValues values;
      try {
        values = capture.run(wanted);
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::OutOfMemory) throw;
        report_.notes.push_back(
            std::string("the reference could not run on ") +
            (are_drawn ? "inputs that were drawn; give some to tune with" : "these inputs") + ": " +
            error.what());
        return;
      }
      for (; begin < end && !report_.is_stopped; ++begin) run_group(pending_[begin], values);
    }
  }

  GroupCase make_case(const PendingGroup& pending, const CapturedValues& values) {
    GroupCase made{.graph = pending.group->graph,
                   .threads = subject_.threads,
                   .precision = subject_.precision};
    for (const ValueId id : made.graph.inputs) {
      made.inputs.push_back(values.at(by_name().at(made.graph[id].name)));
    }
    for (const ValueId id : made.graph.outputs) {
      made.outputs.push_back(values.at(by_name().at(made.graph[id].name)));
    }
    made.magnitudes = summed_magnitudes(made.graph, subject_.registry, made.inputs, pool_);
    return made;
  }

  int64_t buffer_bytes(const Candidate& candidate) const {
    int64_t bytes = candidate.workspace_bytes + candidate.library_bytes;
    const auto add = [&](ValueId value) {
      bytes += type_bytes(subject_.graph[value].type).value_or(0);
    };
    for (const CandidateInput& port : candidate.inputs) add(port.value);
    for (const CandidateOutput& port : candidate.outputs) add(port.value);
    return bytes;
  }

  // The best time that the table has for the group, whoever computes it.
  double best_known(const TuneGroup& group) const {
    double best = std::numeric_limits<double>::infinity();
    for (const int index : group.candidates) {
      const auto found = table_.kernels.find(*keys_[static_cast<size_t>(index)]);
      if (found == table_.kernels.end() || !found->second.refusal.empty()) continue;
      const Cost& cost = found->second;
      const auto& timing = weights_of(group) == Weights::Cold ? cost.cold : cost.warm;
      if (timing) best = std::min(best, timing->seconds);
    }
    return best;
  }

  // Those for all threads first: one thread alone is tried where it could win against them.
  std::vector<Trial> make_trials(const PendingGroup& pending) {
    std::vector<int> order = pending.candidates;
    const auto threads = [&](int index) { return bench_key(subject_, index).threads; };
    std::stable_sort(order.begin(), order.end(),
                     [&](int left, int right) { return threads(left) > threads(right); });
    std::vector<Trial> trials;
    for (const int index : order) {
      const Candidate& candidate = subject_.offers.candidates[static_cast<size_t>(index)];
      Trial& trial = trials.emplace_back();
      trial.key = bench_key(subject_, index);
      trial.bench = options_.bench != nullptr ? options_.bench : &own_bench_;
      trial.fallback = options_.bench != nullptr ? &own_bench_ : nullptr;
      trial.bytes = buffer_bytes(candidate);
      trial.is_alone = candidate.threads == 1 && subject_.threads > 1 && !options_.only_checks;
      if (options_.only_checks) {
        trial_candidates_.push_back(index);
        continue;
      }
      trial.bound_seconds = bound_seconds(pending.group->graph, subject_.registry, speed_,
                                          trial.key.threads, subject_.precision);
      trial_candidates_.push_back(index);
    }
    return trials;
  }

  void run_group(const PendingGroup& pending, const CapturedValues& values) {
    const GroupCase group = make_case(pending, values);
    own_bench_.load(group);
    for (const int index : pending.candidates) {
      own_bench_.offer(subject_.offers.candidates[static_cast<size_t>(index)], subject_.graph);
    }
    if (options_.bench != nullptr) options_.bench->load(group);
    trial_candidates_.clear();
    std::vector<Trial> trials = make_trials(pending);
    const MeasureLimits limits{.weights = weights_of(*pending.group),
                               .candidate_timeout_seconds = options_.candidate_timeout_seconds,
                               .buffer_bytes = options_.buffer_bytes,
                               .only_checks = options_.only_checks};
    const std::string ops = ops_text(pending.group->graph);
    const TrialWatcher watcher = [&](const Trial& trial, double best) {
      done_in_group_ = std::max(done_in_group_, static_cast<size_t>(&trial - trials.data()));
      return tell(ops + " " + trial.key.backend +
                      (trial.key.algorithm.empty() ? "" : ":" + trial.key.algorithm),
                  best);
    };
    done_in_group_ = 0;
    if (!measure_group(trials, limits, best_known(*pending.group), watcher)) {
      report_.is_stopped = true;
    }
    for (size_t index = 0; index < trials.size(); ++index) {
      record(trials[index], *keys_[static_cast<size_t>(trial_candidates_[index])], ops);
    }
    done_ += pending.candidates.size();
  }

  void record(const Trial& trial, const CostKey& key, const std::string& ops) {
    if (!trial.cost) return;
    ++report_.measured;
    if (!trial.cost->refusal.empty()) ++report_.refused;
    const auto& timing = trial.cost->cold ? trial.cost->cold : trial.cost->warm;
    const bool is_view = trial.cost->build_seconds == 0 && timing && timing->seconds == 0;
    if (timing && !is_view && timing->high < trial.bound_seconds) {
      report_.notes.push_back(ops + " by " + key.backend + ":" + key.algorithm + " took " +
                              microseconds_text(timing->seconds) + ", less than its bound of " +
                              microseconds_text(trial.bound_seconds));
    }
    CostTable found;
    found.kernels.emplace(key, *trial.cost);
    merge(table_, found);
  }

  void run_conversions() {
    for (const NeededConversion& conversion : conversions_) {
      if (report_.is_stopped) return;
      done_in_group_ = 0;
      if (!tell(conversion.key.from + " to " + conversion.key.to, 0)) {
        report_.is_stopped = true;
        return;
      }
      Bench& bench = options_.bench != nullptr ? *options_.bench : own_bench_;
      table_.conversions[conversion.cost_key] =
          measure_conversion(bench, conversion.key, conversion.bytes);
      ++report_.measured;
      ++done_;
    }
  }

  bool tell(const std::string& what, double best_seconds) {
    if (!options_.on_progress) return true;
    const size_t done = done_ + done_in_group_;
    const double spent = seconds_since(start_);
    const double left = done == 0 ? 0 : spent / static_cast<double>(done) *
                                            static_cast<double>(total_ - done);
    return options_.on_progress({what, done, total_, best_seconds, left});
  }

  const Subject& subject_;
  const TuneOptions& options_;
  CostTable& table_;
  GroupBench own_bench_;
  ThreadPool pool_;
  Weights weights_;
  ProcessorSpeed speed_;
  std::vector<TuneGroup> groups_;
  std::vector<std::optional<CostKey>> keys_;  // by candidate
  std::vector<PendingGroup> pending_;
  std::vector<NeededConversion> conversions_;
  std::vector<int> trial_candidates_;  // of the group being measured: by trial
  mutable std::map<std::string, ValueId> by_name_;
  TuneReport report_;
  Clock::time_point start_;
  size_t done_ = 0;
  size_t done_in_group_ = 0;
  size_t total_ = 0;
};

}  // namespace

TuneReport tune(const Subject& subject, std::vector<std::shared_ptr<const Plugin>> plugins,
                const TuneOptions& options, CostTable& table) {
  return Tuner(subject, std::move(plugins), options, table).run();
}

}  // namespace tessera::tuning
