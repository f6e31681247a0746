// Measures candidates of one group in alternation.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "measure/measure_tuning.h"
#include "microbench/bench.h"
#include "price/cost_table.h"
#include "price/statistics.h"

namespace tessera::tuning {

// A candidate in the course of its measurement.
struct Trial {
  CandidateId id;
  Bench* bench = nullptr;     // with the group loaded
  Bench* fallback = nullptr;  // used if `bench` does not know the candidate
  int64_t bytes = 0;          // size of its buffers
  double bound_seconds = 0;
  double build_limit_seconds = kBuildSeconds;
  bool is_single_threaded = false;  // runs on one thread although the pool has several
  // The result; nullopt: it could not have won, or measuring was stopped.
  std::optional<Cost> cost;
  std::vector<Sample> samples;
  double spent_seconds = 0;  // total time of its rounds
  bool is_built = false;
  bool is_begun = false;     // built and checked, or refused
  bool is_finished = false;  // and timed
  bool is_dropped = false;   // refused or far behind
};

struct MeasureLimits {
  Weights weights = Weights::Warm;
  double candidate_timeout_seconds = 10;
  int64_t buffer_bytes = 0;
  bool only_checks = false;
  // Loads the group anew with the limits of its errors; returns false if none can be had, or if it
  // has them. If empty, they are not to be had. They take longer to compute than the reference, so
  // this is called only when a check has failed without them, by which less is allowed.
  std::function<bool()> add_limits = {};
  MeasureTuning tuning = {};
};

// Called before each candidate and each round with the trial and the best time so far (0: none).
// Returns false to stop.
using TrialWatcher = std::function<bool(const Trial& trial, double best_seconds)>;

// Builds, checks and times `trials`. `best_seconds` is the best time known before for the group,
// infinity if there is none. Skips candidates whose bound cannot beat it, and single-threaded ones
// if the best takes long. Drops all kernels at the end. Returns false if it was stopped.
bool measure_group(std::vector<Trial>& trials, const MeasureLimits& limits, double best_seconds,
                   const TrialWatcher& watcher);

// Times one conversion by the same method.
ConversionCost measure_conversion(Bench& bench, const ConversionKey& key, int64_t bytes,
                                  const MeasureTuning& tuning = {});

}  // namespace tessera::tuning
