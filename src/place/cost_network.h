// A sum of tables over variables of few values each, and the values that make it least. Knows
// nothing of graphs; solve_placement.cc states the choice among candidates in it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace tessera {

constexpr double kForbidden = std::numeric_limits<double>::infinity();

// What some variables cost together, by their values: the last variable's value changes fastest.
struct CostFactor {
  std::vector<int> variables;  // distinct; ascending
  std::vector<double> costs;   // >= 0, or kForbidden
};

struct CostNetwork {
  std::vector<int> domain_sizes;  // by variable; values are 0 to size - 1
  std::vector<CostFactor> factors;
};

// Work is counted in table cells, not in seconds, so that equal input gives an equal answer on
// every machine. A cell takes one to eight nanoseconds.
struct NetworkEffort {
  double table_cells = 1 << 22;  // of the largest table: 8 bytes each
  double bound_cells = 1 << 14;  // of the largest table of a bound: many bounds are asked for
  double work_cells = 1e9;       // in all
  bool removes_dominated_values = true;
  bool moves_costs = true;  // before it tries values, where elimination is too much work
  // Asked now and then whether there is time: what there is then is the answer. Empty: there is.
  std::function<bool()> may_go_on = {};

  bool is_over(double cells) const { return cells > work_cells || (may_go_on && !may_go_on()); }
};

struct NetworkSolution {
  std::vector<int> values;  // by variable; empty where none was found, and `cost` kForbidden
  double cost = kForbidden;
  double lower_bound = 0;  // no assignment costs less; equal to `cost` where that is proven least
  double work_cells = 0;
};

// The assignment of least cost. Removes values that another one always beats and eliminates
// variables in the order of the smallest table that this leaves (so degrees one and two first).
// Where such tables would be too large, costs are moved between the small ones for a bound, an
// assignment is improved piece by piece, and values that the two rule out are removed, until what
// is left is small enough; or else values of one variable are tried in turn, those first that a
// bound by mini-buckets promises most of. Where `effort` ends before, the best found, with a bound.
// Variable elimination: Bertele and Brioschi, Nonserial Dynamic Programming, 1972; dominated
// values: Goldstein, Biophysical Journal 66, 1994; mini-buckets: Dechter and Rish, JACM 50, 2003.
// Only assignments that cost less than `upper_bound` are of interest: where there is none, `values`
// is empty, and `lower_bound` at most `upper_bound`. Pure, but for what `may_go_on` does.
NetworkSolution minimise(const CostNetwork& network, const NetworkEffort& effort = {},
                         double upper_bound = kForbidden);

// What `values` cost: a plain sum over the factors.
double cost_of(const CostNetwork& network, const std::vector<int>& values);

}  // namespace tessera
