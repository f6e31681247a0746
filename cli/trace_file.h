// A run as a Chrome trace, which https://ui.perfetto.dev and chrome://tracing open.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tessera/tessera.h"

namespace tessera::cli {

// One stretch of time, measured from the start of the command.
struct Span {
  std::chrono::nanoseconds start{};
  std::chrono::nanoseconds duration{};
};

struct RunTimes {
  Span load;
  Span bind;
  Span run;
};

// The trace in the "JSON object" form of
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU: load, bind and
// run, and within run each step with its op, FLOPs, bytes and GFLOP/s.
std::string trace_text(const RunTimes& times, const std::vector<StepRecord>& steps);

}  // namespace tessera::cli
