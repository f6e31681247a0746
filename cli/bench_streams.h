// Measures executors of one model that run at the same time, for `tessera bench --streams`.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/bound_model.h"
#include "cli/progress.h"

namespace tessera::cli {

struct StreamsEffort {
  double seconds = 0;
  uint64_t warmup_runs = 0;  // of each stream, after its first run
};

struct StreamsTimes {
  std::vector<double> run_ms;  // every measured run of all streams; empty if stopped before
  double elapsed_ms = 0;       // from the common start until the last stream has ended
};

// Runs each of `streams` on a thread of its own: first without measuring, then, from a common start
// on, until the time is up, at least once. Ctrl-C cancels the current runs and ends measuring. Call
// it on the main thread. Throws what a run throws; Cancelled if Ctrl-C cancelled runs before any
// was measured.
StreamsTimes measure_streams(std::vector<BoundModel>& streams, const StreamsEffort& effort,
                             Progress& progress);

}  // namespace tessera::cli
