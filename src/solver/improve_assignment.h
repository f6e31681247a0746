// Improves an assignment of a cost network by large neighbourhood search.
#pragma once

#include <vector>

#include "solver/cost_network.h"

namespace tessera {

// Repeatedly frees a few neighbouring variables, those first whose tables are furthest above their
// minima, and optimises them exactly by elimination while the others stay fixed, until no piece
// improves. May start from a forbidden assignment. Returns the number of cells visited; costs may
// be negative. If DualAscent has moved the costs, the excess of a piece over its minimum shows
// where the assignment is bad. If `effort` is exhausted, continues within limits until the
// assignment is feasible.
double improve_assignment(const CostNetwork& network, const NetworkEffort& effort,
                          std::vector<int>& values);

}  // namespace tessera
