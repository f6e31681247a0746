// Measures candidates: each is built, checked against the reference on real values, and timed.
// Fills a CostTable.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/errors/log.h"
#include "base/threads/denormals.h"
#include "measure/measure_tuning.h"
#include "measure/phase_timer.h"
#include "microbench/bench.h"
#include "price/cost_table.h"
#include "price/groups.h"
#include "tessera/tessera.h"

namespace tessera::tuning {

struct TuneOptions {
  // Input values, in the order of the graph's inputs; empty: drawn from `seed`.
  std::vector<Tensor> inputs;
  uint64_t seed = 1;
  // Stops measuring after this time, which includes building; 0: no limit.
  double budget_seconds = 0;
  // A candidate that takes longer for one run is refused.
  double candidate_timeout_seconds = 10;
  // Maximum size of captured values held at a time. A group that needs more is measured too, after
  // a reference run of its own.
  int64_t capture_bytes = int64_t{512} << 20;
  // Candidates of one group are measured in alternation while their buffers are smaller than this
  // in total; else one after another.
  int64_t buffer_bytes = int64_t{512} << 20;
  // The denormal rule of kernels, here and in plans.
  Denormals denormals = Denormals::Flush;
  // Only check, do not time: entries have no times, and conversions are not measured.
  bool only_checks = false;
  // Measure the processor's speed if there is much to measure; else use a table of upper bounds.
  bool measures_speed = true;
  // The expected duration and gain of measuring; reported when measuring starts.
  std::optional<TuningQuote> quote = {};
  // Called when a phase begins, and often while measuring. Returns false to stop; results so far
  // are kept.
  std::function<bool(const TuneProgress&)> on_progress;
  // Creates the bench when there is something to measure; if empty or returning null, this process
  // measures. Candidates that the bench does not know for their group alone are measured in this
  // process.
  std::function<std::unique_ptr<Bench>()> start_bench;
  // Gets a warning if memory does not suffice to measure something, which is then not measured. May
  // be null.
  const Log* log = nullptr;
  MeasureTuning tuning = {};
};

struct TuneReport {
  int measured = 0;  // candidates and conversions
  int known = 0;     // requested, but already in the table or duplicates within the graph
  int refused = 0;   // included in `measured`
  bool is_stopped = false;
  bool is_out_of_time = false;  // stopped because the budget was spent
  double seconds = 0;
  // The sum of the peak resident sizes of this process and the measuring one.
  int64_t peak_bytes = 0;
  std::map<std::string, double> phases;  // seconds by activity
  std::vector<std::string> notes;        // anomalies, one sentence each
};

// The report in the form of the public interface.
TuningDescription describe(TuneReport report);

// Measures selected candidates and conversions of one task. A failure of a candidate becomes an
// entry of the table with its reason. Every constant of the graph must have its elements.
class Tuner {
 public:
  // `groups` are from collect_groups(), `keys` from cost_keys(). All arguments except `plugins` and
  // `options` must outlive it. The time budget starts here.
  Tuner(const TuningTask& task, const std::vector<TuneGroup>& groups,
        const std::vector<std::optional<CostKey>>& keys,
        std::vector<std::shared_ptr<const Plugin>> plugins, TuneOptions options, CostTable& table);
  ~Tuner();

  // Measures the requested entries that the table lacks. Skips candidates whose bound cannot beat
  // the known times of their group, those whose announced build time exceeds the remaining time,
  // and those for which there is not enough memory. Candidates of one group are measured in
  // alternation. Returns false if it was stopped. Ends early after `max_seconds`.
  bool measure(std::span<const int> candidates, std::span<const NeededConversion> conversions,
               double max_seconds = std::numeric_limits<double>::infinity());

  // Same as measure(), without a limit and without skipping candidates that cannot beat others.
  bool measure_even_hopeless(std::span<const int> candidates);

  // Whether there is time left.
  bool should_continue() const;
  // Whether the user stopped it.
  bool is_cancelled() const;
  double seconds_left() const;          // infinity without a budget
  const MeasureTuning& tuning() const;  // of the options

  // Both as in the report, but cheaper.
  double seconds() const;
  int measured() const;
  TuneReport report() const;
  // Others may record their own activities here.
  PhaseTimer& phases();
  // For activities of others: announces that a phase begins or continues, with `done` of `total`
  // (0: unknown) units. Returns false if the user wants to stop; should_continue() is then false
  // too.
  bool report(BindPhase phase, const std::string& what = {}, size_t done = 0, size_t total = 0) {
    return report({.what = what, .done = done, .total = total, .phase = phase});
  }
  // The same with further fields. The tuner sets `seconds_left`, `seconds_allowed`, `can_stop` and
  // `quote`.
  bool report(TuneProgress progress);
  // For measurements of others. begin_undisturbed() comes before one; should_repeat() tells
  // afterwards whether other processes disturbed it, and has waited for their end (quiet.h).
  void begin_undisturbed();
  bool should_repeat();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::tuning
