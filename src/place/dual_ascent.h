// Bounds of cost networks that are too wide to be solved by elimination.
#pragma once

#include <cstddef>
#include <vector>

#include "place/cost_network.h"

namespace tessera {

// Moves costs between the tables of a network, so that the sum stays what it is for every
// assignment, and the sum of the tables' minima, which bounds it from below, rises. Each pass goes
// through the variables to and fro: what the tables around a variable say of its values is
// collected and shared out among the tables ahead (sequential reweighted message passing:
// Kolmogorov, IEEE PAMI 37, 2015, with single variables in between). The bound comes near that of
// linear relaxation.
class DualAscent {
 public:
  explicit DualAscent(const CostNetwork& network);

  // One pass; gives the cells it went through.
  double ascend();
  double bound() const;  // kForbidden: no assignment is allowed
  // The network with costs as they were moved, but for constant().
  CostNetwork network() const;
  double constant() const { return constant_; }
  // Forbids the values of which the moved costs say that they cost more than `most` in all.
  void forbid_above(double most);
  // Variable by variable the value that looks cheapest beside those before it; perhaps forbidden.
  std::vector<int> decode() const;

 private:
  struct Table {
    std::vector<int> variables;
    std::vector<double> costs;
    std::vector<int> strides;
    int first = 0;  // in the order of the variables
    int last = 0;
  };

  void order_variables();
  void forbid_dead_values();
  bool forbid_dead_values_of(Table& table);
  void visit(int variable, bool is_forward);
  void least_by_value(const Table& table, size_t place, std::vector<double>& least) const;
  void add_by_value(Table& table, size_t place, const std::vector<double>& amounts, double factor);

  std::vector<int> sizes_;
  std::vector<int> order_;                    // variables
  std::vector<int> rank_;                     // by variable: its place in order_
  std::vector<std::vector<double>> singles_;  // by variable, by value; kForbidden: dead
  std::vector<Table> tables_;                 // over two variables and more
  struct Place {
    size_t table;
    size_t place;  // of the variable in it
  };
  std::vector<std::vector<Place>> tables_of_;  // by variable
  double constant_ = 0;
  bool is_impossible_ = false;
  double cells_ = 0;  // gone through
  std::vector<double> least_;
};

}  // namespace tessera
