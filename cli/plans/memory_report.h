// The memory layout of a plan's inner values, as text, JSON and a picture.
#pragma once

#include <string>

#include "cli/output/json_output.h"
#include "cli/output/text_table.h"
#include "tessera/tessera.h"

namespace tessera::cli {

struct MemoryReport {
  std::string model;
  MemoryDescription memory;
  int64_t steps = 0;          // of the plan
  int64_t library_bytes = 0;  // memory that libraries keep on their own
  double plan_ms = 0;         // time that memory planning took
};

// The report of an executor.
MemoryReport memory_report_of(const Executor& executor);

// The totals, then the largest blocks.
std::string memory_text(const MemoryReport& report, const TextStyle& style);

// The figures of memory_figures_json(), additional figures, and the blocks.
Json memory_json(const MemoryReport& report);

// The figures that `bench` shows too.
Json memory_figures_json(const MemoryDescription& memory, int64_t library_bytes);

// A self-contained SVG image: steps from left to right, addresses from bottom to top, a rectangle
// with a title for each block, and a line at the lower bound.
std::string memory_svg(const MemoryReport& report);

}  // namespace tessera::cli
