// How a plan's inner values lie in memory: text, JSON and a picture.
#pragma once

#include <string>

#include "cli/json_output.h"
#include "tessera/tessera.h"

namespace tessera::cli {

struct MemoryReport {
  MemoryDescription memory;
  int64_t steps = 0;          // of the plan
  int64_t library_bytes = 0;  // that libraries keep to themselves
  double plan_ms = 0;         // that laying out took
};

// The report of an executor.
MemoryReport memory_report_of(const Executor& executor);

// Lines of at most kTextColumns characters: the figures, then the largest blocks.
std::string memory_text(const MemoryReport& report);

// arena_bytes, lower_bound_bytes, ratio, proven, naive_bytes, padding_bytes, weights_bytes,
// backend_bytes, plan_ms, and blocks: {name, type, workspace, lower, upper, bytes, offset}.
Json memory_json(const MemoryReport& report);

// arena_bytes, lower_bound_bytes, weights_bytes, naive_bytes, backend_bytes: what `bench` shows.
Json memory_figures_json(const MemoryDescription& memory, int64_t library_bytes);

// A picture that needs nothing else: steps from left to right, addresses from the bottom up, a
// rectangle with a title for each block, and a line at the lower bound.
std::string memory_svg(const MemoryReport& report);

}  // namespace tessera::cli
