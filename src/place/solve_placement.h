// The cheapest placement, with a proof.
#pragma once

#include <vector>

#include "place/placement.h"
#include "place/value_layouts.h"
#include "solver/cost_network.h"

namespace tessera {

// Something that is decided before solving.
struct Decision {
  int candidate = 0;
  bool is_chosen = false;
};

struct PlacementEffort {
  NetworkEffort network;  // for all networks together, but for the largest table
  int networks = 2000;    // one is enough where groups wait for nobody and all limits are kept
};

struct PlacementSolution {
  Placement placement;  // nothing chosen: none was found
  std::vector<PlacementConversion> conversions;
  double seconds = kForbidden;  // of the candidates and conversions
  double lower_bound = 0;       // no placement takes less: equal to `seconds` where that is proven
  int networks = 0;             // that were solved
  double work_cells = 0;

  bool is_found() const { return seconds != kForbidden; }
  bool is_proven() const { return lower_bound >= seconds; }
};

// The placement of least candidates' and conversions' seconds, such that
//  - each node is in one candidate;
//  - each value that a candidate reads, and each result, is made by some candidate and converted
//    into the layout that is wanted; one converted copy serves all;
//  - candidates can run one after the other, each after all that make what it reads;
//  - kept bytes in all, and each workspace, are within the problem's limits.
// A cost network says all but the third and the sum of kept bytes. Candidates of which each waits
// for the next are forbidden together once an answer has them, and the network is solved again.
// Where too much is kept, a price on bytes (Lagrange's multiplier) makes the bounds tight, and a
// best-first search forbids in turn each candidate that takes part. Where `effort` ends before, the
// best found, with a bound: `effort.network.may_go_on` can watch a clock. Pure otherwise: equal
// problems give equal answers. `decisions` are kept: the least of what they leave.
PlacementSolution solve_placement(const PlacementProblem& problem,
                                  const PlacementEffort& effort = {},
                                  const std::vector<Decision>& decisions = {});

}  // namespace tessera
