// What `tessera bench` measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/json_output.h"
#include "cli/plan_json.h"
#include "cli/plan_summary.h"
#include "cli/text_table.h"

namespace tessera::cli {

struct BenchReport {
  std::string model;
  double load_ms = 0;
  double bind_ms = 0;
  double first_ms = 0;         // the first run, which may still set things up
  std::vector<double> run_ms;  // each run that was measured; empty where stopped before the first
  int threads = 0;
  PlanCounts counts;
  std::vector<StepTotal> totals;                  // their times are not known
  std::optional<PlacementDescription> placement;  // nullopt without costs
  CacheReport cache;
  MemoryDescription memory;
  int64_t library_bytes = 0;        // that libraries keep to themselves
  double dispatch_ns_per_step = 0;  // what a step takes beside its kernel
};

std::string bench_text(const BenchReport& report, const TextStyle& style);

// What docs/formats/json.md says under `tessera bench`. Figures of no runs are null.
Json bench_json(const BenchReport& report);

}  // namespace tessera::cli
