// The validator of every choice among candidates. It shares no code with the algorithms that
// choose.
#pragma once

#include <string>

#include "place/placement.h"
#include "place/solve_placement.h"

namespace tessera {

// Says what is wrong with `placement`, or returns "". Wrong is: a node in no candidate or in two, a
// forbidden candidate, or a candidate that runs before one whose result it reads. Pure, like the
// next function.
std::string explain_violation(const PlacementProblem& problem, const Placement& placement);

// Checks the placement as above. Also wrong is: a layout that is needed but does not exist, a
// conversion from a layout in which the value does not exist, seconds that differ from the sum of
// candidates and conversions, a lower bound above `seconds`, or a workspace above the limit.
std::string explain_violation(const PlacementProblem& problem, const PlacementSolution& solution);

// Returns its argument if nothing is wrong with it, else throws Internal. Every algorithm that
// chooses passes its result through one of these. A PlacementSolution without a placement is
// returned unchecked.
Placement checked(const PlacementProblem& problem, Placement placement);
PlacementSolution checked(const PlacementProblem& problem, PlacementSolution solution);

}  // namespace tessera
