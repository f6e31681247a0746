// Computes by how much prices must change before another candidate is chosen.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "place/placement.h"
#include "place/solve_placement.h"

namespace tessera {

// The margin of one candidate. nullopt: not computed. kForbidden: there is no such placement.
struct CandidateMargin {
  // The increase of the optimal cost if the candidate is forced. Its price would have to drop by
  // that much for it to be chosen. 0 if it is in the optimum.
  std::optional<double> behind_seconds;
  // The increase of the optimal cost if the candidate is forbidden. Its price may rise by that much
  // before another placement is cheaper. 0 if it is not in the optimum.
  std::optional<double> ahead_seconds;
};

// Returns the margins by candidate of `problem`. `optimum` is the cheapest placement, proven.
// Candidates that differ only in their seconds are interchangeable in a placement, so one problem
// is solved for all of them. First computes the optimum without each of the optimum's candidates,
// then the remaining margins, node by node, as long as `should_continue` returns true (empty: to
// the end). `effort` is for each solution; the margin remains nullopt if a solution is not proven.
// Pure, except for what `should_continue` does.
std::vector<CandidateMargin> find_margins(const PlacementProblem& problem,
                                          const PlacementSolution& optimum,
                                          const PlacementEffort& effort = {},
                                          const std::function<bool()>& should_continue = {});

}  // namespace tessera
