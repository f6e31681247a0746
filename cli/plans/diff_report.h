// The report of `tessera diff`: which steps of two plans differ, and what that costs; first as
// data, then as text and JSON.
//
// Nodes are matched by their names, conversions and copies by the name of their value. Steps of the
// two plans that share a node or a value, directly or through others, are one comparison: if one
// plan computes conv1 and relu1 in one step and the other in two, these three steps.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/plans/explain_report.h"

namespace tessera::cli {

// The steps of a comparison that differ.
struct StepChange {
  // The kinds of the difference, in this order: "added" (only the second plan has it), "removed",
  // "fusion" (other groups of nodes), "op", "backend", "algorithm", "layout", "shape", "threads".
  std::vector<std::string> kinds;
  std::vector<size_t> first_steps;   // indices of the first plan's steps
  std::vector<size_t> second_steps;  // indices of the second plan's steps
  double first_us = 0;
  double second_us = 0;
};

// A setting that differs, which may be the reason for different times or steps.
struct SettingChange {
  std::string setting;  // "threads", "processor", "Tessera", or the name of a library
  std::string first;
  std::string second;
};

struct PlanDifference {
  std::vector<StepChange> changes;      // the largest difference of times first
  std::vector<SettingChange> settings;  // only those that both plans know
  size_t unchanged_steps = 0;           // of each plan
  double first_unchanged_us = 0;
  double second_unchanged_us = 0;
  double first_us = 0;  // the sum of all steps
  double second_us = 0;

  // Whether both plans have the same steps. Times and settings do not count.
  bool is_equal() const { return changes.empty(); }
};

// Compares the steps, with their times, that the reports have. Pure. The number of threads of a
// step is only compared if both plans have equally many.
PlanDifference difference_of(const ExplainReport& first, const ExplainReport& second);

// One of the two plans, and how the user named it.
struct DiffSide {
  std::string source;   // the file, as given
  std::string options;  // of this side alone, as given; "": none
  ExplainReport report;
};

std::string diff_text(const DiffSide& first, const DiffSide& second,
                      const PlanDifference& difference, const TextStyle& style);

Json diff_json(const DiffSide& first, const DiffSide& second, const PlanDifference& difference);

}  // namespace tessera::cli
