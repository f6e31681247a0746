// What `tessera bench` measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/json_output.h"
#include "cli/plan_summary.h"

namespace tessera::cli {

struct BenchReport {
  std::string model;
  double load_ms = 0;
  double bind_ms = 0;
  double first_ms = 0;         // the first run, which may still set things up
  std::vector<double> run_ms;  // each run that was measured; empty where stopped before the first
  int threads = 0;
  PlanCounts counts;
  std::optional<PlacementDescription> placement;  // nullopt without costs
  CacheReport cache;
  MemoryDescription memory;
  int64_t library_bytes = 0;        // that libraries keep to themselves
  double dispatch_ns_per_step = 0;  // what a step takes beside its kernel
};

// Lines of at most kTextColumns characters.
std::string bench_text(const BenchReport& report);

// load_ms, bind_ms, first_ms, median_ms, min_ms, p90_ms, p99_ms, runs, threads, steps, conversions,
// backends: {name: steps that are no conversions}, placement: see placement_json(), memory: see
// memory_figures_json(), dispatch_ns_per_step, and cache: see cache_json(). Figures of no runs are
// null.
Json bench_json(const BenchReport& report);

}  // namespace tessera::cli
