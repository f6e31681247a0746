// The table of fused groups in the report of `tessera explain`.
#pragma once

#include <string>
#include <vector>

#include "cli/text_table.h"
#include "tessera/tessera.h"

namespace tessera::cli {

// The kernels of `plan` that compute two or more nodes: what each of them reads, writes and takes
// beside its nodes one by one. Equal groups share a row, those that take longest together come
// first. "" if there are none. `step_us` has one measured time for each step.
std::string fused_groups_text(const PlanDescription& plan, const std::vector<double>& step_us,
                              const TextStyle& style);

}  // namespace tessera::cli
