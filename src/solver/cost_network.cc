#include "solver/cost_network.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/containers/at.h"
#include "solver/dominated_values.h"
#include "solver/elimination_plan.h"
#include "solver/explain_violation.h"
#include "solver/factor_sum.h"
#include "solver/reduction.h"
#include "solver/reparametrize.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// The share of the permitted work that elimination alone may take before bounds are tried.
constexpr double kEliminationShare = 0.25;

class Search {
 public:
  Search(const NetworkEffort& effort, double upper_bound) : effort_(effort), least_(upper_bound) {}

  // Solves what remains in `reduction`; `values` holds the values of fixed variables. Returns a
  // lower bound of all its assignments, and records the best assignment if it beats the best known
  // one.
  double solve(Reduction reduction, std::vector<int> values) {
    while (true) {
      const int variable = reduction.next();
      if (variable < 0) {
        const double cost = reduction.constant();
        if (cost < least_) {
          reduction.complete(values);
          least_ = cost;
          best_ = values;
          has_found_ = true;
        }
        return cost;
      }
      if (reduction.score(variable) > effort_.table_cells) {
        return branch(reduction, std::move(values));
      }
      work_cells_ += reduction.eliminate(variable);
    }
  }

  const std::vector<int>& best() const { return best_; }
  double work_cells() const { return work_cells_; }

 private:
  double branch(const Reduction& reduction, std::vector<int> values) {
    const int variable = reduction.highest_degree_variable();
    struct Branch {
      double bound;
      int value;
    };
    std::vector<Branch> branches;
    for (int value = 0; value < reduction.domain_sizes()[at(variable)]; ++value) {
      if (effort_.is_over(work_cells_)) {
        branches.push_back({0, value});
        continue;
      }
      work_cells_ += reduction.cells_left();
      Reduction fixed = reduction.fixed(variable, value);
      branches.push_back({bound_of(fixed, reduction, values, variable, value), value});
    }
    std::stable_sort(branches.begin(), branches.end(), [](const Branch& left, const Branch& right) {
      return left.bound < right.bound;
    });
    double bound = kForbidden;
    for (const Branch& branch : branches) {
      if (branch.bound >= least_ || effort_.is_over(work_cells_)) {
        bound = std::min(bound, branch.bound);
        continue;
      }
      values[at(variable)] = branch.value;
      const double before = least_;
      const double below = solve(reduction.fixed(variable, branch.value), values);
      // The assignment found below lacks values for the variables that were eliminated above this
      // branch.
      if (least_ < before) {
        best_[at(variable)] = branch.value;
        reduction.complete(best_);
      }
      bound = std::min(bound, std::max(branch.bound, below));
    }
    return bound;
  }

  // A lower bound by mini-buckets of `fixed`, which is `above` with `variable` fixed to `value`.
  // Also records the assignment that it suggests, if that is the best so far.
  double bound_of(Reduction fixed, const Reduction& above, std::vector<int> values, int variable,
                  int value) {
    const Reduction whole = fixed;
    while (true) {
      const int next = fixed.next();
      if (next < 0) break;
      work_cells_ += fixed.eliminate_by_mini_buckets(next, effort_.bound_cells);
    }
    const double bound = fixed.constant();
    if (bound >= least_) return bound;
    fixed.complete(values);
    const double cost = whole.cost_of_left(values);
    if (cost < least_) {
      least_ = cost;
      best_ = values;
      has_found_ = true;
      best_[at(variable)] = value;
      above.complete(best_);
    }
    return bound;
  }

  NetworkEffort effort_;
  double least_;
  std::vector<int> best_;
  bool has_found_ = false;
  double work_cells_ = 0;
};

// Branch and bound over values; `upper_bound` is the best known cost.
NetworkSolution search(const CostNetwork& network, const NetworkEffort& effort,
                       double upper_bound) {
  Search search(effort, upper_bound);
  NetworkSolution solution;
  solution.lower_bound =
      search.solve(Reduction(network), std::vector<int>(network.domain_sizes.size(), 0));
  solution.work_cells = search.work_cells();
  solution.values = search.best();
  return solution;
}

NetworkSolution solve(const CostNetwork& network, const NetworkEffort& effort, double upper_bound) {
  const EliminationPlan plan = plan_elimination(network, effort.table_cells);
  // Elimination has no answer before it is finished.
  const bool is_small = plan.is_complete && !effort.is_over(0) &&
                        plan.total_cells <= kEliminationShare * effort.work_cells;
  if (is_small || !effort.reparametrizes) return search(network, effort, upper_bound);
  return minimise_by_reparametrization(network, effort, upper_bound, search);
}

}  // namespace

NetworkSolution minimise(const CostNetwork& network, const NetworkEffort& effort,
                         double upper_bound) {
  NetworkSolution solution;
  solution.lower_bound = upper_bound;
  for (const int size : network.domain_sizes) {
    if (size == 0) return solution;
  }
  ReducedNetwork reduced;
  if (effort.removes_dominated_values) reduced = remove_dominated_values(network);
  const CostNetwork& small = effort.removes_dominated_values ? reduced.network : network;
  NetworkSolution found = solve(small, effort, upper_bound);
  solution.work_cells = found.work_cells;
  solution.values = std::move(found.values);
  for (size_t variable = 0; variable < reduced.kept.size() && !solution.values.empty();
       ++variable) {
    solution.values[variable] = reduced.kept[variable][at(solution.values[variable])];
  }
  const bool is_found = !solution.values.empty() || network.domain_sizes.empty();
  if (is_found) solution.cost = cost_of(network, solution.values);
  // Sums in different orders differ in their last digits.
  solution.lower_bound = std::min({found.lower_bound, solution.cost, upper_bound});
  const std::string violation = explain_violation(network, solution);
  if (!violation.empty()) throw Error(ErrorKind::Internal, "the solver", violation);
  return solution;
}

double cost_of(const CostNetwork& network, const std::vector<int>& values) {
  double sum = 0;
  for (const CostFactor& factor : network.factors) {
    sum += cost_of(factor, values, network.domain_sizes);
  }
  return sum;
}

}  // namespace tessera
