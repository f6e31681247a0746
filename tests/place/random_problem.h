// Small random problems for tests: chains with branches, groups, pairs of groups that are convex
// but depend on each other, two devices, a limit on workspaces, pins.
#pragma once

#include "place/placement.h"

namespace tessera {

struct RandomProblemSize {
  int max_nodes = 7;
  int max_layouts = 4;
  int max_groups = 5;  // candidates over more than one node
};

// Equal seeds give equal problems. Prices are whole numbers, so that sums are exact.
PlacementProblem make_random_problem(unsigned seed, const RandomProblemSize& size);

}  // namespace tessera
