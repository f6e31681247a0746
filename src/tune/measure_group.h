// Measures candidates of one group side by side.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tune/bench.h"
#include "tune/cost_table.h"
#include "tune/statistics.h"

namespace tessera::tuning {

// A candidate on its way from unknown to measured.
struct Trial {
  CandidateKey key;
  Bench* bench = nullptr;     // who measures it, with the group loaded
  Bench* fallback = nullptr;  // who measures it where `bench` does not know it
  int64_t bytes = 0;          // of its buffers
  double bound_seconds = 0;
  double build_limit_seconds = kBuildSeconds;
  bool is_alone = false;  // on one thread, where others have several
  // What came of it; nullopt: it could not have won, or the measuring was stopped.
  std::optional<Cost> cost;
  std::vector<Sample> samples;
  double spent_seconds = 0;  // on these
  bool is_built = false;
  bool is_begun = false;     // built and checked, or refused
  bool is_finished = false;  // and timed
  bool is_out = false;       // refused, or far behind
};

struct MeasureLimits {
  Weights weights = Weights::Warm;
  double candidate_timeout_seconds = 10;
  int64_t buffer_bytes = 0;
  bool only_checks = false;
};

// Told before each candidate and each round: which trial, and the best time so far (0: none).
// Gives false to stop.
using TrialWatcher = std::function<bool(const Trial& trial, double best_seconds)>;

// Builds, checks and times `trials`. `best_seconds` is the best time known before for the group,
// infinite where there is none: what cannot beat it by its bound is left out, and one thread alone
// where the best takes long. All kernels are dropped at the end. Gives false where it was stopped.
bool measure_group(std::vector<Trial>& trials, const MeasureLimits& limits, double best_seconds,
                   const TrialWatcher& watcher);

// Times one conversion with the same care.
ConversionCost measure_conversion(Bench& bench, const ConversionKey& key, int64_t bytes);

}  // namespace tessera::tuning
