// Lower bounds of cost networks that are too wide for elimination.
#pragma once

#include <cstddef>
#include <vector>

#include "solver/cost_network.h"

namespace tessera {

// Reparametrises a network: moves costs between its tables so that the sum is unchanged for every
// assignment, while the sum of the tables' minima, a lower bound, rises. Each pass visits the
// variables in order and in reverse: it collects the minimum marginals of a variable from the
// tables around it and distributes them to the tables ahead (sequential reweighted message passing:
// Kolmogorov, IEEE PAMI 37, 2015, over single variables). The bound approaches the bound of the
// linear relaxation.
class DualAscent {
 public:
  explicit DualAscent(const CostNetwork& network);

  // Runs one pass; returns the number of cells visited.
  double ascend();
  double bound() const;  // kForbidden: there is no feasible assignment
  // The network with moved costs, without constant().
  CostNetwork network() const;
  double constant() const { return constant_; }
  // Forbids values for which the moved costs prove a total above `limit`.
  void forbid_above(double limit);
  // Chooses, variable by variable, the value that is cheapest given the values before it; the
  // result may be forbidden.
  std::vector<int> decode() const;

 private:
  struct Table {
    std::vector<int> variables;
    std::vector<double> costs;
    std::vector<int> strides;
    int first = 0;  // rank of its first variable
    int last = 0;
  };

  void order_variables();
  void forbid_dead_values();
  bool forbid_dead_values_of(Table& table);
  void visit(int variable, bool is_forward);
  void minimum_by_value(const Table& table, size_t position, std::vector<double>& minima) const;
  void add_by_value(Table& table, size_t position, const std::vector<double>& amounts,
                    double factor);

  std::vector<int> sizes_;
  std::vector<int> order_;                    // variables
  std::vector<int> rank_;                     // by variable: its index in order_
  std::vector<std::vector<double>> singles_;  // by variable and value; kForbidden: dead
  std::vector<Table> tables_;                 // over two or more variables
  struct Incidence {
    size_t table;
    size_t position;  // index of the variable in the table
  };
  std::vector<std::vector<Incidence>> tables_of_;  // by variable
  double constant_ = 0;
  bool is_impossible_ = false;
  double cells_ = 0;  // visited
  std::vector<double> minima_;
};

}  // namespace tessera
