// What is told of the choice by price: how good it is, and what would change it.
#pragma once

#include <optional>
#include <string>

#include "cli/json_output.h"
#include "tessera/tessera.h"

namespace tessera::cli {

// Lines on price, bound, time to solve and the run-off; `run_ms` is what a run took, nullopt where
// none was timed. "" without `placement`.
std::string placement_text(const std::optional<PlacementDescription>& placement,
                           std::optional<double> run_ms);

// predicted_ms, isolated_ms, measured_ms, build_ms, lower_bound_ms, proven_optimal, gap, solve_ms,
// and contenders: {name: ms}; null where nothing is known. `run_ms` as above; without it
// measured_ms is what binding timed.
Json placement_json(const std::optional<PlacementDescription>& placement,
                    std::optional<double> run_ms);

// "chosen, 1.2 us ahead", "wins if 3.4 us (31 %) faster", or "" where nothing was found out.
std::string margin_text(const CandidateDescription& candidate);

// The nodes for which another candidate comes closest to being chosen, in a table, and how many
// candidates nothing was found out of; "" where nothing was looked for.
std::string closest_calls_text(const PlanDescription& plan);

}  // namespace tessera::cli
