// Minimises cost networks that are too wide for elimination.
#pragma once

#include <functional>

#include "solver/cost_network.h"

namespace tessera {

// Like minimise(), for a network without dominated values. Eliminates variables while tables stay
// small, and alternates for the rest between a bound (DualAscent), an assignment
// (improve_assignment()), and the removal of values that both exclude. When the rest is small
// enough or no longer shrinks, `search` solves it, with the best known cost as its upper bound.
NetworkSolution minimise_by_reparametrization(
    const CostNetwork& network, const NetworkEffort& effort, double upper_bound,
    const std::function<NetworkSolution(const CostNetwork&, const NetworkEffort&, double)>& search);

}  // namespace tessera
