// What a plan adds up to: the figures that `bench` and `explain` show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/tessera.h"

namespace tessera::cli {

bool is_conversion(const PlanStep& step);

// The backend's name, or "tessera" for what no backend does.
std::string backend_of(const PlanStep& step);

struct PlanCounts {
  int64_t steps = 0;  // conversions too
  int64_t conversions = 0;
  // Steps that are no conversions, by backend, the most first: with the conversions they make up
  // `steps`.
  std::vector<std::pair<std::string, int64_t>> backends;
};

PlanCounts count_steps(const PlanDescription& plan);

// "onednn 54, reference 3"
std::string backend_counts_text(const PlanCounts& counts);

// The layouts of what a step reads and makes, without constants, each once: "nchw16c" where they
// are the same, else "row_major,nhwc→nchw16c".
std::string layouts_text(const PlanStep& step);
std::string layouts_text(const std::vector<PlanPort>& inputs, const std::vector<PlanPort>& outputs);

// GFLOP/s of `flops` in `time_us`; 0 where either is 0.
double gflops_of(int64_t flops, double time_us);

// The `percent`-th percentile of `values`, between two of them in proportion, as numpy.percentile()
// gives it. `values` must not be empty.
double percentile(std::vector<double> values, double percent);

// The index in the plan of each record's step; nullopt where the plan has none.
std::vector<std::optional<size_t>> plan_indices(const std::vector<StepRecord>& records,
                                                const PlanDescription& plan);

// What one backend, or all conversions, took of a run.
struct TimeShare {
  std::string name;
  int64_t steps = 0;
  int64_t flops = 0;
  double time_us = 0;
};

// One entry a backend, without conversions, the longest first; then "conversions" where there are
// any. `step_us` has one time a step of the plan.
std::vector<TimeShare> time_shares(const PlanDescription& plan, const std::vector<double>& step_us);

// Nodes that a backend refused for one reason.
struct RefusalGroup {
  std::string backend;
  std::string reason;
  std::vector<std::string> nodes;  // each once, in the plan's order
};

// By backend; of each, the reason with the most nodes first.
std::vector<RefusalGroup> group_refusals(const PlanDescription& plan);

}  // namespace tessera::cli
