// What a plan adds up to: the figures that `bench` and `explain` show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/text_table.h"
#include "tessera/tessera.h"

namespace tessera::cli {

bool is_conversion(const PlanStep& step);

// A copy from one place in memory to another, which no backend makes but Tessera itself.
bool is_copy(const PlanStep& step);

struct PlanCounts {
  int64_t steps = 0;
  int64_t conversions = 0;
  int64_t copies = 0;
  // The other steps by backend, the most first.
  std::vector<std::pair<std::string, int64_t>> backends;
};

PlanCounts count_steps(const PlanDescription& plan);

// "60 steps: 54 on onednn, 3 on reference, 2 conversions, 1 copy"
std::string steps_text(const PlanCounts& counts);

// The layouts of what a step reads and makes, without constants, each once: "nchw16c" where they
// are the same, else "row_major,nhwc→nchw16c".
std::string layouts_text(const PlanStep& step);
std::string layouts_text(const std::vector<PlanPort>& inputs, const std::vector<PlanPort>& outputs);

// The nodes that one kernel does: "conv1", "conv1, relu1", and where names may be cut "conv1 and 5
// more" for many or long ones. `nodes` must not be empty.
std::string nodes_text(const std::vector<std::string>& nodes, const TextStyle& style);

// "Conv+Relu+Concat" as it is; of more than four ops the ends and how many there are, where names
// may be cut: "Conv+Relu+…+Softmax (51 nodes)".
std::string op_text(const std::string& op, const TextStyle& style);

// GFLOP/s of `flops` in `time_us`; 0 where either is 0.
double gflops_of(int64_t flops, double time_us);

// The `percent`-th percentile of `values`, between two of them in proportion, as numpy.percentile()
// gives it. `values` must not be empty.
double percentile(std::vector<double> values, double percent);

// The index in the plan of each record's step; nullopt where the plan has none.
std::vector<std::optional<size_t>> plan_indices(const std::vector<StepRecord>& records,
                                                const PlanDescription& plan);

// "fine", "refused", "not measured", "not built".
const char* verdict_name(Verdict verdict);

// What a step is: "kernel", "conversion" or "copy".
std::string kind_of(const PlanStep& step);

// Steps of one kind and backend. Together the totals have each step of a plan once.
struct StepTotal {
  std::string kind;
  std::string backend;  // "" where no backend does them, but Tessera itself
  int64_t steps = 0;
  int64_t flops = 0;
  double time_us = 0;
};

// The longest first, and by number of steps where times are equal. `step_us` has one time a step of
// the plan, or is empty.
std::vector<StepTotal> step_totals(const PlanDescription& plan, const std::vector<double>& step_us);

// Nodes that a backend refused for one reason.
struct RefusalGroup {
  std::string backend;
  std::string reason;
  std::vector<std::string> nodes;  // each once, in the plan's order
};

// By backend; of each, the reason with the most nodes first.
std::vector<RefusalGroup> group_refusals(const PlanDescription& plan);

}  // namespace tessera::cli
