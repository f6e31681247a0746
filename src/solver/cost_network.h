// A cost network (weighted constraint satisfaction problem): a sum of cost tables over discrete
// variables, and its minimisation. Independent of graphs; solve_placement.cc expresses the choice
// among candidates as a cost network.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace tessera {

constexpr double kForbidden = std::numeric_limits<double>::infinity();

// The cost of some variables together, as a table over their values: the last variable's value
// varies fastest.
struct CostFactor {
  std::vector<int> variables;  // distinct, ascending
  std::vector<double> costs;   // >= 0, or kForbidden
};

struct CostNetwork {
  std::vector<int> domain_sizes;  // by variable; values are 0 to size - 1
  std::vector<CostFactor> factors;
};

// Work limits, in table cells rather than seconds, so that equal input gives an equal answer on
// every machine. A cell takes one to eight nanoseconds.
struct NetworkEffort {
  double table_cells = 1 << 22;  // of the largest table; 8 bytes each
  double bound_cells = 1 << 14;  // of the largest table of a bound; small, as bounds are frequent
  double work_cells = 1e9;       // in total
  bool removes_dominated_values = true;
  bool reparametrizes = true;  // if elimination is too expensive: move costs before branching
  // Asked regularly whether to continue; if not, the best answer so far is returned. Empty:
  // continue.
  std::function<bool()> should_continue = {};

  bool is_over(double cells) const {
    return cells > work_cells || (should_continue && !should_continue());
  }
};

struct NetworkSolution {
  std::vector<int> values;  // by variable; empty if none was found, with `cost` kForbidden
  double cost = kForbidden;
  double lower_bound = 0;  // no assignment costs less; equal to `cost` if optimality is proven
  double work_cells = 0;
};

// Finds an assignment of minimum cost. Removes dominated values, and eliminates variables in the
// order of the smallest resulting table (so variables of degree one and two first). If the tables
// become too large, alternates three steps until the rest is small enough: it moves costs between
// the small tables to get a bound, improves an assignment piece by piece, and removes values that
// the bound and the assignment exclude. If the rest stays too large, branches on the values of one
// variable, in the order of their mini-bucket bounds. If `effort` is exhausted, returns the best
// assignment found, with a bound. Variable elimination: Bertele and Brioschi, Nonserial Dynamic
// Programming, 1972; dominated values: Goldstein, Biophysical Journal 66, 1994; mini-buckets:
// Dechter and Rish, JACM 50, 2003. Searches only for assignments that cost less than `upper_bound`:
// if there is none, `values` is empty and `lower_bound` is at most `upper_bound`. Pure, except for
// `should_continue`.
NetworkSolution minimise(const CostNetwork& network, const NetworkEffort& effort = {},
                         double upper_bound = kForbidden);

// The cost of `values`: a plain sum over the factors.
double cost_of(const CostNetwork& network, const std::vector<int>& values);

}  // namespace tessera
