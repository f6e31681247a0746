// Removes dominated values of variables from a cost network.
#pragma once

#include <vector>

#include "solver/cost_network.h"

namespace tessera {

struct ReducedNetwork {
  CostNetwork network;                 // the same variables with fewer values
  std::vector<std::vector<int>> kept;  // by variable: the original numbers of its values
};

// Drops value a of a variable if some value b never costs more, whatever the values of other
// variables are (Goldstein's criterion, factor by factor; of equal values, the first is kept). Also
// drops values that are always forbidden. A variable with one value left is in no factor. Keeps at
// least one assignment of minimum cost. Pure.
ReducedNetwork remove_dominated_values(const CostNetwork& network);

}  // namespace tessera
