// Candidates to CostTable: every candidate is built, checked against the reference on true values,
// and timed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tune/bench.h"
#include "tune/cost_table.h"
#include "tune/groups.h"

namespace tessera::tuning {

struct TuneProgress {
  std::string what;  // "Conv+Relu mylib:winograd"
  size_t done = 0;   // of `total` candidates and conversions
  size_t total = 0;
  double best_seconds = 0;  // of the group that is measured; 0: none so far
  double seconds_left = 0;  // an estimate
};

struct TuneOptions {
  // For the true values, in the order of the graph's inputs; empty: drawn from `seed`.
  std::vector<Tensor> inputs;
  uint64_t seed = 1;
  // A candidate that needs longer to be built or for one run is refused.
  double candidate_timeout_seconds = 10;
  // True values are kept up to this at a time. Groups that need more than all of it are measured
  // all the same, each after a run of its own.
  int64_t capture_bytes = int64_t{256} << 20;
  // Candidates of one group are measured in turns as long as their buffers stay below this; else
  // one after the other.
  int64_t buffer_bytes = int64_t{512} << 20;
  // Check and do not time: no entry has a time then, and no conversion is measured.
  bool only_checks = false;
  // Called often. Gives false to stop: what was measured stays.
  std::function<bool(const TuneProgress&)> on_progress;
  // Who measures; null: this process. Where it does not know a candidate for its group alone, this
  // process measures it.
  Bench* bench = nullptr;
};

struct TuneReport {
  int measured = 0;  // candidates and conversions
  int known = 0;     // that the table had already, or twice in the graph
  int refused = 0;   // of those measured
  bool is_stopped = false;
  double seconds = 0;
  std::vector<std::string> notes;  // what is odd, a sentence each
};

// Measures what `table` does not know yet of the subject's candidates and conversions. A failure of
// a candidate is an entry with its reason. Every constant of the graph has its elements. Throws
// OutOfMemory where the reference run does not fit.
TuneReport tune(const Subject& subject, std::vector<std::shared_ptr<const Plugin>> plugins,
                const TuneOptions& options, CostTable& table);

}  // namespace tessera::tuning
