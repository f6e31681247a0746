// Makes an assignment of a cost network cheaper, piece by piece.
#pragma once

#include <vector>

#include "place/cost_network.h"

namespace tessera {

// Frees some neighbouring variables at a time, those first that cost more than their tables' least,
// and eliminates them exactly, the others staying as they are; until no piece gets cheaper. May
// start from a forbidden assignment. Gives the cells gone through; costs may be negative. Where
// DualAscent has moved the costs, what a piece is above its least shows where the assignment is
// bad. Where `effort` has ended, it goes on, within bounds, until nothing forbidden is assigned.
double improve_assignment(const CostNetwork& network, const NetworkEffort& effort,
                          std::vector<int>& values);

}  // namespace tessera
