// Takes values out of a cost network that another value of their variable always beats.
#pragma once

#include <vector>

#include "place/cost_network.h"

namespace tessera {

struct ReducedNetwork {
  CostNetwork network;                 // the same variables with fewer values
  std::vector<std::vector<int>> kept;  // by variable: what its values are in the whole network
};

// Drops value a of a variable where some value b costs no more whatever the other variables are
// (Goldstein's criterion, factor by factor; of equal ones the first stays), and values that are
// forbidden whatever the others are. A variable with one value left is in no factor. Keeps at least
// one assignment of least cost. Pure.
ReducedNetwork remove_dominated_values(const CostNetwork& network);

}  // namespace tessera
