// Improves an assignment of a cost network by large neighbourhood search.
#pragma once

#include <vector>

#include "solver/cost_network.h"

namespace tessera {

// Repeatedly frees a piece, which is a few neighbouring variables, and optimises it exactly by
// elimination while the other variables stay fixed, until no piece improves. The variables whose
// tables are furthest above their minima come first. May start from a forbidden assignment. Returns
// the number of cells visited; costs may be negative. If DualAscent has moved the costs, the excess
// of a piece over its minimum shows where the assignment is bad. If `effort` is exhausted,
// continues within limits until the assignment is feasible.
double improve_assignment(const CostNetwork& network, const NetworkEffort& effort,
                          std::vector<int>& values);

}  // namespace tessera
