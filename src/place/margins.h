// What it would take for another candidate to be chosen.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "place/placement.h"
#include "place/solve_placement.h"

namespace tessera {

// Of one candidate; nullopt where it was not found out. kForbidden: there is no such placement.
struct CandidateMargin {
  // By which the cheapest placement with the candidate is dearer than the cheapest of all: as much
  // cheaper it would have to become to be in the latter. 0 for those that are.
  std::optional<double> behind_seconds;
  // By which the cheapest placement without it is dearer: as much dearer it may become before
  // another takes its place. 0 for those that are not in the cheapest.
  std::optional<double> ahead_seconds;
};

// By candidate of `problem`, of which `optimum` is the cheapest placement, proven. Candidates that
// differ in their seconds alone share a placement, so one is solved for all of them. First finds
// who comes next where each of the optimum's candidates may not be used, then goes on with what is
// left, node by node, as long as `may_go_on` says so (empty: to the end). Each solution has
// `effort`; of what it does not prove nothing is said. Pure, but for what `may_go_on` does.
std::vector<CandidateMargin> find_margins(const PlacementProblem& problem,
                                          const PlacementSolution& optimum,
                                          const PlacementEffort& effort = {},
                                          const std::function<bool()>& may_go_on = {});

}  // namespace tessera
