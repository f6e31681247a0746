// Finds the cheapest placement and proves that it is the cheapest.
#pragma once

#include <vector>

#include "place/placement.h"
#include "place/value_layouts.h"
#include "solver/cost_network.h"

namespace tessera {

// A constraint on one candidate: it must be chosen, or must not.
struct Decision {
  int candidate = 0;
  bool is_chosen = false;
};

struct PlacementEffort {
  NetworkEffort network;  // for all networks together; its table limits are for each table
  int networks = 2000;    // the first is enough if its solution has no cycles
};

struct PlacementSolution {
  Placement placement;  // empty: none was found
  std::vector<PlacementConversion> conversions;
  double seconds = kForbidden;  // of the candidates and conversions
  double lower_bound = 0;       // no placement is cheaper; equal to `seconds` if proven optimal
  int networks = 0;             // number of networks solved
  double work_cells = 0;

  bool is_found() const { return seconds != kForbidden; }
  bool is_proven() const { return lower_bound >= seconds; }
};

// Minimises the seconds of candidates and conversions under these constraints:
//  - each node is in one candidate;
//  - each value that a candidate reads, and each result, is produced by some candidate and
//    converted into the required layout; all readers share one converted copy;
//  - the candidates can run in an order in which each value is produced before it is read;
//  - no workspace is larger than the problem's limit.
// A cost network expresses all of these except the third. If a solution contains a cycle of
// candidates, these are forbidden together (a nogood) and the network is solved again. If the table
// of a nogood would be too large, a best-first branch and bound forbids the candidates of the cycle
// in turn. `decisions` are further constraints. If `effort` ends the search early, returns the best
// placement found, with a lower bound. Pure: equal problems give equal answers, unless
// `effort.network.should_continue` watches a clock.
PlacementSolution solve_placement(const PlacementProblem& problem,
                                  const PlacementEffort& effort = {},
                                  const std::vector<Decision>& decisions = {});

}  // namespace tessera
