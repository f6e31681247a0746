// Predicts the cost of eliminating the variables of a cost network.
#pragma once

#include <vector>

#include "solver/cost_network.h"

namespace tessera {

struct EliminationPlan {
  double largest_cells = 1;  // of the tables visited
  double total_cells = 0;
  bool is_complete = false;  // no table exceeds the limit
};

// Simulates elimination in the order of minimise(), each time of the variable with the smallest
// table, and stops before a table of more than `max_cells`.
EliminationPlan plan_elimination(const CostNetwork& network, double max_cells);

}  // namespace tessera
