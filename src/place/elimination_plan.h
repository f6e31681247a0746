// What eliminating the variables of a cost network would take, before it is done.
#pragma once

#include <vector>

#include "place/cost_network.h"

namespace tessera {

struct EliminationPlan {
  double largest_cells = 1;  // of the tables gone through
  double total_cells = 0;
  bool is_complete = false;  // no table is larger than was allowed
};

// Goes through the variables in the order in which minimise() would, each time the one with the
// smallest table, and stops before a table of more than `most_cells`.
EliminationPlan plan_elimination(const CostNetwork& network, double most_cells);

}  // namespace tessera
