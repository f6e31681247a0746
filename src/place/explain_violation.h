// The judge of every choice among candidates. Shares no code with what chooses.
#pragma once

#include <string>

#include "place/placement.h"
#include "place/solve_placement.h"

namespace tessera {

// Says what is wrong with `placement`, or "": a node in no candidate or in two, a forbidden
// candidate, an order in which something runs before what it reads. Pure, as the next one is.
std::string explain_violation(const PlacementProblem& problem, const Placement& placement);

// As for its placement, and: a layout that is wanted and not at hand, a conversion from a layout
// where the value is not, seconds that are not the sum, a limit that is not kept.
std::string explain_violation(const PlacementProblem& problem, const PlacementSolution& solution);

// What is given, if nothing is wrong with it: all that chooses passes its answers through this.
// Throws Internal otherwise.
Placement judged(const PlacementProblem& problem, Placement placement);
PlacementSolution judged(const PlacementProblem& problem, PlacementSolution solution);

}  // namespace tessera
