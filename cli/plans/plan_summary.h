// Totals of a plan: the figures that `bench` and `explain` show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/output/text_table.h"
#include "tessera/tessera.h"

namespace tessera::cli {

bool is_conversion(const PlanStep& step);

// Whether the step copies memory. Tessera itself does this, not a backend.
bool is_copy(const PlanStep& step);

struct PlanCounts {
  int64_t steps = 0;
  int64_t conversions = 0;
  int64_t copies = 0;
  // The other steps by backend, most steps first.
  std::vector<std::pair<std::string, int64_t>> backends;
};

PlanCounts count_steps(const PlanDescription& plan);

// "60 steps: 54 on onednn, 3 on reference, 2 conversions, 1 copy"
std::string steps_text(const PlanCounts& counts);

// The layouts of a step's inputs and outputs, without constants and repetitions: "nchw16c" if both
// sides are equal, otherwise "row_major,nhwc→nchw16c".
std::string layouts_text(const PlanStep& step);
std::string layouts_text(const std::vector<PlanPort>& inputs, const std::vector<PlanPort>& outputs);

// The nodes that one kernel computes: "conv1", "conv1, relu1"; if names may be cut and the nodes
// are many or their names long, "conv1 and 5 more". `nodes` must not be empty.
std::string nodes_text(const std::vector<std::string>& nodes, const TextStyle& style);

// "Conv+Relu+Concat" is returned unchanged. If names may be cut, more than four ops are shortened
// to their ends and their number: "Conv+Relu+…+Softmax (51 nodes)".
std::string op_text(const std::string& op, const TextStyle& style);

// GFLOP/s of `flops` in `time_us`; 0 if either is 0.
double gflops_of(int64_t flops, double time_us);

// The `percent`-th percentile of `values`, interpolated linearly between two values, as
// numpy.percentile() does. `values` must not be empty.
double percentile(std::vector<double> values, double percent);

// For each record, the index of its step in the plan; nullopt if the plan has no such step, as for
// records of nested graphs.
std::vector<std::optional<size_t>> plan_indices(const std::vector<StepRecord>& records,
                                                const PlanDescription& plan);
// The same for records of nested graphs: the index in PlanDescription::nested_steps.
std::vector<std::optional<size_t>> nested_indices(const std::vector<StepRecord>& records,
                                                  const PlanDescription& plan);

// The kind of a step: "kernel", "conversion" or "copy".
std::string kind_of(const PlanStep& step);

// All steps of one kind and backend. The totals together count each step of a plan once.
struct StepTotal {
  std::string kind;
  std::string backend;  // "" for steps that Tessera itself computes
  int64_t steps = 0;
  int64_t flops = 0;
  double time_us = 0;
};

// The longest total first; by number of steps if times are equal. `step_us` has one time for each
// step of the plan, or is empty.
std::vector<StepTotal> step_totals(const PlanDescription& plan, const std::vector<double>& step_us);

// The nodes that a backend refused for one reason.
struct RefusalGroup {
  std::string backend;
  std::string reason;
  std::vector<std::string> nodes;  // without repetitions, in the plan's order
};

// Sorted by backend; for each backend, the reason with the most nodes first.
std::vector<RefusalGroup> group_refusals(const PlanDescription& plan);

}  // namespace tessera::cli
