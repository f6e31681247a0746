// The reports of `tessera bench`: its measurements as text and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output/json_output.h"
#include "cli/output/text_table.h"
#include "cli/plans/plan_json.h"
#include "cli/plans/plan_summary.h"

namespace tessera::cli {

struct BenchReport {
  std::string model;
  double load_ms = 0;
  double bind_ms = 0;
  double first_ms = 0;         // the first run, which may include set-up work
  std::vector<double> run_ms;  // every measured run; empty if stopped before the first
  int threads = 0;
  PlanCounts counts;
  std::vector<StepTotal> totals;                  // without times: steps are not timed
  std::optional<PlacementDescription> placement;  // nullopt without costs
  CacheReport cache;
  std::vector<CompileDescription> compiled;
  MemoryDescription memory;
  int64_t library_bytes = 0;        // memory that libraries keep on their own
  double dispatch_ns_per_step = 0;  // overhead of a step in addition to its kernel
};

// `tessera bench --streams`: executors of one model that ran at the same time.
struct StreamsReport {
  std::string model;
  double load_ms = 0;
  double bind_ms = 0;  // all streams, one after the other
  int streams = 0;
  int threads = 0;             // of all streams together
  std::vector<double> run_ms;  // every measured run of all streams; empty if stopped before
  double elapsed_ms = 0;       // the time in which the measured runs ran
  PlanCounts counts;           // of one stream's plan
  CacheReport cache;
};

// `tessera bench` with a range of sizes in --shape: requests of random shapes.
struct RequestsReport {
  std::string model;
  double load_ms = 0;
  double bind_ms = 0;          // for the shapes of the first run
  double first_ms = 0;         // the first run, which is no measured request
  std::vector<double> run_ms;  // every measured request; empty if stopped before the first
  int64_t shapes = 0;          // different sets of input shapes among the measured requests
  int threads = 0;
  PlanCounts counts;  // of the plan for the shapes of the first run
  CacheReport cache;
};

std::string bench_text(const BenchReport& report, const TextStyle& style);
std::string streams_text(const StreamsReport& report, const TextStyle& style);
std::string requests_text(const RequestsReport& report, const TextStyle& style);

// The JSON that docs/formats/json.md documents for `tessera bench`, `tessera bench --streams` and
// `tessera bench --requests`. Statistics over no runs are null.
Json bench_json(const BenchReport& report);
Json streams_json(const StreamsReport& report);
Json requests_json(const RequestsReport& report);

}  // namespace tessera::cli
