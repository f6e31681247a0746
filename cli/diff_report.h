// The report of `tessera diff`: which steps of two plans differ, and what that costs.
#pragma once

#include <string>

#include "cli/plan_difference.h"

namespace tessera::cli {

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
