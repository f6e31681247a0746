// Validates every answer of the solver. Shares no code with the solver.
#pragma once

#include <string>

#include "solver/cost_network.h"

namespace tessera {

// Returns what is wrong with `solution`, or "": a variable without a value of its domain, a cost
// that is not the sum of the factors, a bound above the cost. Pure.
std::string explain_violation(const CostNetwork& network, const NetworkSolution& solution);

}  // namespace tessera
