// Finds the cheapest way to compute a group of nodes in parts.
#pragma once

#include <optional>
#include <vector>

#include "place/placement.h"

namespace tessera {

// Returns the least sum of seconds of candidates that together compute `group` (ascending). Each of
// them computes fewer nodes than the group. `is_known`, by candidate, says which may be used.
// Layouts and conversions do not count. Returns nullopt if the known candidates cannot compute all
// nodes. If the search is very large, returns the least sum that it found. Pure.
std::optional<double> cheapest_parts_seconds(const PlacementProblem& problem,
                                             const std::vector<int>& group,
                                             const std::vector<bool>& is_known);

}  // namespace tessera
