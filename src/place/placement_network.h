// The choice among candidates as a cost network. solve_placement.cc adds the constraint that the
// network does not express: groups must not depend on each other in a cycle.
#pragma once

#include <vector>

#include "place/placement.h"
#include "place/solve_placement.h"
#include "place/value_layouts.h"
#include "solver/cost_network.h"

namespace tessera {

// Each node has a variable: the candidate that computes it. Each value that is not constant has a
// variable: the layout in which it is produced and those in which it is available. So every factor
// has one or two variables.
class PlacementNetwork {
 public:
  // `problem` must outlive this. If a node has no candidate, the domain of its variable is empty.
  explicit PlacementNetwork(const PlacementProblem& problem);

  // Returns the network with `decisions` applied.
  CostNetwork state(const std::vector<Decision>& decisions) const;

  // Forbids that all of `candidates` are chosen together. Returns false, and changes nothing, if
  // the table of costs would be too large.
  bool add_nogood(const std::vector<int>& candidates);

  // Translate an assignment `values` into the chosen candidates, ascending, and the conversions.
  std::vector<int> chosen(const std::vector<int>& values) const;
  std::vector<PlacementConversion> conversions(const std::vector<int>& values) const;

 private:
  void list_node_choices();
  void add_prices();
  void add_group_factors();
  void add_value(int value);
  int source_of(int value, int candidate) const;
  std::vector<int> wanted_by(int value, int candidate) const;
  void add_pair(int first, int second, std::vector<double> costs);

  const PlacementProblem& problem_;
  std::vector<bool> is_usable_;                          // by candidate
  std::vector<std::vector<int>> node_choices_;           // by node: candidates
  std::vector<int> producer_;                            // by value: node, or kNoIndex
  std::vector<std::vector<int>> readers_;                // by value: nodes that read it
  std::vector<std::vector<ValueChoice>> value_choices_;  // by value variable
  std::vector<int> value_of_;                            // by value variable: its value
  std::vector<std::vector<int>> wanted_;                 // by value variable: layouts
  CostNetwork network_;
};

}  // namespace tessera
