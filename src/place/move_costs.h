// Minimises cost networks that are too wide to be solved by elimination.
#pragma once

#include <functional>

#include "place/cost_network.h"

namespace tessera {

// As minimise(), for a network without dominated values. Eliminates what leaves small tables, and
// takes turns with the rest: a bound (DualAscent), an assignment (improve_assignment()), and the
// removal of values that bound and assignment rule out. Once what is left is small enough, or no
// longer shrinks, `search` gets it, with the cost of the best known as its upper bound.
NetworkSolution minimise_by_moving_costs(
    const CostNetwork& network, const NetworkEffort& effort, double upper_bound,
    const std::function<NetworkSolution(const CostNetwork&, const NetworkEffort&, double)>& search);

}  // namespace tessera
