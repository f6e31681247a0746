// Candidates to CostTable: every candidate is built, checked against the reference on true values,
// and timed.
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

#include "base/denormals.h"
#include "tessera/tessera.h"
#include "tune/bench.h"
#include "tune/cost_table.h"
#include "tune/groups.h"
#include "tune/phases.h"

namespace tessera::tuning {

struct TuneOptions {
  // For the true values, in the order of the graph's inputs; empty: drawn from `seed`.
  std::vector<Tensor> inputs;
  uint64_t seed = 1;
  // Ends measuring after so long, what is built then included; 0: never.
  double budget_seconds = 0;
  // A candidate that needs longer for one run is refused.
  double candidate_timeout_seconds = 10;
  // True values are kept up to this at a time. Groups that need more than all of it are measured
  // all the same, each after a run of its own.
  int64_t capture_bytes = int64_t{512} << 20;
  // Candidates of one group are measured in turns as long as their buffers stay below this; else
  // one after the other.
  int64_t buffer_bytes = int64_t{512} << 20;
  // What kernels run with, here and in the plans.
  Denormals denormals = Denormals::Flush;
  // Check and do not time: no entry has a time then, and no conversion is measured.
  bool only_checks = false;
  // The processor's speed, once there is much to measure; else a table says what it could be.
  bool measures_speed = true;
  // Called when a phase begins, and often while measuring. Gives false to stop: what was measured
  // stays.
  std::function<bool(const TuneProgress&)> on_progress;
  // Makes who measures, once there is something to measure; empty, or giving null: this process.
  // Where it does not know a candidate for its group alone, this process measures that.
  std::function<std::unique_ptr<Bench>()> start_bench;
};

struct TuneReport {
  int measured = 0;  // candidates and conversions
  int known = 0;     // that were asked for and the table had already, or twice in the graph
  int refused = 0;   // of those measured
  bool is_stopped = false;
  bool is_out_of_time = false;  // stopped because the budget was spent
  double seconds = 0;
  // The most that this process and the one that measures had resident, each at its own time.
  int64_t peak_bytes = 0;
  std::map<std::string, double> phases;  // seconds by what was done
  std::vector<std::string> notes;        // what is odd, a sentence each
};

// Measures candidates and conversions of one subject, those that it is asked for. A failure of a
// candidate is an entry of the table with its reason. Every constant of the graph has its elements.
class Tuner {
 public:
  // `groups` are those of collect_groups(), `keys` of cost_keys(). All but `plugins` and `options`
  // must outlive it. Time runs from here on.
  Tuner(const Subject& subject, const std::vector<TuneGroup>& groups,
        const std::vector<std::optional<CostKey>>& keys,
        std::vector<std::shared_ptr<const Plugin>> plugins, TuneOptions options, CostTable& table);
  ~Tuner();

  // Measures what the table does not know. What cannot win by its bound against what is known of
  // its group is passed over, and so is what announces to take longer to build than there is time.
  // Candidates of one group are measured side by side. Gives false where it was stopped. Throws
  // OutOfMemory where the reference run does not fit.
  // Ends early after `most_seconds`.
  bool measure(std::span<const int> candidates, std::span<const NeededConversion> conversions,
               double most_seconds = std::numeric_limits<double>::infinity());

  // Whether there is time left.
  bool may_go_on() const;
  double seconds_left() const;  // infinity without a budget

  // Both as the report has them, and cheaper to ask for.
  double seconds() const;
  int measured() const;
  TuneReport report() const;
  // To which others may add what they do beside it.
  Phases& phases();
  // For what others do beside it: a phase begins, or goes on, with `done` of `total` (0: not
  // known). Gives false where whoever is told wants it to stop, and then may_go_on() does too.
  bool tell(BindPhase phase, const std::string& what = {}, size_t done = 0, size_t total = 0);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Measures all candidates and conversions of the subject.
TuneReport tune(const Subject& subject, std::vector<std::shared_ptr<const Plugin>> plugins,
                const TuneOptions& options, CostTable& table);

}  // namespace tessera::tuning
