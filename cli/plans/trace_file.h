// Writes a run as a Chrome trace, for https://ui.perfetto.dev and chrome://tracing.
#pragma once

#include <string>
#include <vector>

#include "cli/output/span.h"
#include "tessera/tessera.h"

namespace tessera::cli {

struct Trace {
  Span load;
  std::vector<StageRecord> load_stages;
  Span bind;
  std::vector<StageRecord> bind_stages;
  Span run;
  PlanDescription plan;
  std::vector<StepRecord> steps;
};

// The trace in the "JSON object" form of
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU: load and bind
// with their stages, then the run with each step and conversion: op, backend, algorithm, layouts,
// FLOPs, bytes and GFLOP/s.
std::string trace_text(const Trace& trace);

}  // namespace tessera::cli
