// The choice among candidates as a cost network. What it cannot say (that groups do not wait for
// each other, and how much may be kept in all) solve_placement.cc adds.
#pragma once

#include <vector>

#include "place/placement.h"
#include "place/solve_placement.h"
#include "place/value_layouts.h"
#include "solver/cost_network.h"

namespace tessera {

// A variable for each node: the candidate that computes it; and one for each value that is not
// constant: where it is made and in which layouts it is at hand. Factors are then of one or two
// variables.
class PlacementNetwork {
 public:
  // `problem` must outlive this. Where a node has no candidate its variable has no values.
  explicit PlacementNetwork(const PlacementProblem& problem);

  // With `decisions`, and `seconds_per_byte` as the price of each byte that is kept.
  CostNetwork state(const std::vector<Decision>& decisions, double seconds_per_byte) const;

  // Forbids that all of `candidates` are chosen together. Gives whether it did: for many of them
  // the table would be too large.
  bool add_nogood(const std::vector<int>& candidates);

  // What an assignment means: the candidates, ascending, and the conversions.
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
  std::vector<int> producer_;                            // by value; -1: none
  std::vector<std::vector<int>> readers_;                // by value: nodes at which it is wanted
  std::vector<std::vector<ValueChoice>> value_choices_;  // by variable beyond the nodes'
  std::vector<int> value_of_;                            // of these
  std::vector<std::vector<int>> wanted_;                 // of these: layouts
  CostNetwork network_;
};

}  // namespace tessera
