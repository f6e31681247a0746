#include "place/cost_network.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

#include "base/check.h"
#include "place/dominated_values.h"
#include "place/factor_sum.h"

namespace tessera {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

// A variable that was eliminated, with the factors that mention it: what its value is chosen by
// once those of the others are known.
struct Eliminated {
  int variable = 0;
  std::vector<CostFactor> factors;
};

// A network from which variables are taken one by one.
class Reduction {
 public:
  Reduction(std::vector<int> domain_sizes, std::vector<CostFactor> factors)
      : domain_sizes_(std::move(domain_sizes)),
        factors_of_(domain_sizes_.size()),
        is_left_(domain_sizes_.size(), true),
        scores_(domain_sizes_.size(), 0) {
    for (CostFactor& factor : factors) add(std::move(factor));
    for (size_t variable = 0; variable < domain_sizes_.size(); ++variable) {
      rescore(static_cast<int>(variable));
    }
  }

  // The variable whose elimination makes the smallest table; -1 where none is left.
  int next() {
    while (!queue_.empty()) {
      const auto [score, variable] = queue_.top();
      if (is_left_[at(variable)] && scores_[at(variable)] == score) return variable;
      queue_.pop();
    }
    return -1;
  }

  // Cells that eliminating `variable` goes through.
  double score(int variable) const { return scores_[at(variable)]; }

  double eliminate(int variable) {
    std::vector<CostFactor> bucket = take_bucket(variable);
    const FactorSum sum(bucket, variable, domain_sizes_);
    add(sum.minimum());
    const double cells = sum.cells();
    close(variable, sum.others(), std::move(bucket));
    return cells;
  }

  // As eliminate(), in several tables of at most `cells` each: what is left costs no more than what
  // there was, and perhaps less.
  double eliminate_at_least(int variable, double cells) {
    std::vector<CostFactor> bucket = take_bucket(variable);
    std::vector<std::vector<CostFactor>> parts;
    for (const CostFactor& factor : bucket) {
      const auto fitting = std::find_if(parts.begin(), parts.end(), [&](auto& part) {
        part.push_back(factor);
        const bool fits = FactorSum(part, variable, domain_sizes_).cells() <= cells;
        part.pop_back();
        return fits;
      });
      if (fitting != parts.end()) {
        fitting->push_back(factor);
      } else {
        parts.push_back({factor});
      }
    }
    double work = 0;
    for (const std::vector<CostFactor>& part : parts) {
      const FactorSum sum(part, variable, domain_sizes_);
      add(sum.minimum());
      work += sum.cells();
    }
    std::vector<int> neighbours = FactorSum(bucket, variable, domain_sizes_).others();
    close(variable, neighbours, std::move(bucket));
    return work;
  }

  // Values of the eliminated variables, given those of the others in `values`.
  void complete(std::vector<int>& values) const {
    for (auto step = eliminated_.rbegin(); step != eliminated_.rend(); ++step) {
      values[at(step->variable)] =
          FactorSum(step->factors, step->variable, domain_sizes_).best_value(values);
    }
  }

  double constant() const { return constant_; }
  const std::vector<int>& domain_sizes() const { return domain_sizes_; }

  double cost_of_left(const std::vector<int>& values) const {
    double sum = constant_;
    for (const CostFactor& factor : factors_) {
      if (!factor.costs.empty()) sum += cost_of(factor, values, domain_sizes_);
    }
    return sum;
  }

  // The variable with the most neighbours; of equal ones the first.
  int busiest() const {
    int best = -1;
    size_t most = 0;
    for (size_t variable = 0; variable < is_left_.size(); ++variable) {
      if (!is_left_[variable]) continue;
      const size_t degree = factors_of_[variable].size();
      if (best >= 0 && degree <= most) continue;
      best = static_cast<int>(variable);
      most = degree;
    }
    return best;
  }

  // The factors that are left, with `variable` fixed at `value`: its domain has one value then.
  Reduction fixed(int variable, int value) const {
    std::vector<int> sizes = domain_sizes_;
    sizes[at(variable)] = 1;
    std::vector<CostFactor> left;
    for (const CostFactor& factor : factors_) {
      if (!factor.costs.empty())
        left.push_back(restrict_factor(factor, variable, value, domain_sizes_));
    }
    Reduction made(std::move(sizes), std::move(left));
    made.constant_ += constant_;
    for (size_t other = 0; other < is_left_.size(); ++other) {
      if (!is_left_[other]) made.is_left_[other] = false;
    }
    // Its value is decided: completing must not touch it.
    made.is_left_[at(variable)] = false;
    return made;
  }

 private:
  void add(CostFactor factor) {
    if (factor.variables.empty()) {
      constant_ += factor.costs[0];
      return;
    }
    // One table for each set of variables.
    for (const size_t index : factors_of_[at(factor.variables[0])]) {
      CostFactor& known = factors_[index];
      if (known.variables != factor.variables) continue;
      for (size_t cell = 0; cell < known.costs.size(); ++cell) {
        known.costs[cell] += factor.costs[cell];
      }
      return;
    }
    for (const int variable : factor.variables)
      factors_of_[at(variable)].push_back(factors_.size());
    factors_.push_back(std::move(factor));
  }

  std::vector<CostFactor> take_bucket(int variable) {
    std::vector<CostFactor> bucket;
    for (const size_t index : factors_of_[at(variable)]) {
      for (const int other : factors_[index].variables) {
        if (other != variable) std::erase(factors_of_[at(other)], index);
      }
      bucket.push_back(std::move(factors_[index]));
      factors_[index] = {};
    }
    factors_of_[at(variable)].clear();
    return bucket;
  }

  void close(int variable, const std::vector<int>& neighbours, std::vector<CostFactor> bucket) {
    is_left_[at(variable)] = false;
    for (const int neighbour : neighbours) rescore(neighbour);
    eliminated_.push_back({variable, std::move(bucket)});
  }

  void rescore(int variable) {
    std::vector<int> scope = {variable};
    for (const size_t index : factors_of_[at(variable)]) {
      const std::vector<int>& variables = factors_[index].variables;
      scope.insert(scope.end(), variables.begin(), variables.end());
    }
    std::sort(scope.begin(), scope.end());
    scope.erase(std::unique(scope.begin(), scope.end()), scope.end());
    double cells = 1;
    for (const int other : scope) cells *= domain_sizes_[at(other)];
    scores_[at(variable)] = cells;
    queue_.emplace(cells, variable);
  }

  std::vector<int> domain_sizes_;
  std::vector<CostFactor> factors_;  // without costs: taken
  std::vector<std::vector<size_t>> factors_of_;
  std::vector<bool> is_left_;
  std::vector<double> scores_;
  double constant_ = 0;
  std::vector<Eliminated> eliminated_;
  using Scored = std::pair<double, int>;
  std::priority_queue<Scored, std::vector<Scored>, std::greater<>> queue_;
};

class Search {
 public:
  Search(const NetworkEffort& effort, double upper_bound) : effort_(effort), least_(upper_bound) {}

  // Solves what `reduction` has left, `values` being those of the variables that are fixed. Gives a
  // bound of all its assignments; the best one that beats what was known is kept.
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
  bool has_found() const { return has_found_; }
  double work_cells() const { return work_cells_; }

 private:
  double branch(const Reduction& reduction, std::vector<int> values) {
    const int variable = reduction.busiest();
    struct Branch {
      double bound;
      int value;
    };
    std::vector<Branch> branches;
    for (int value = 0; value < reduction.domain_sizes()[at(variable)]; ++value) {
      Reduction fixed = reduction.fixed(variable, value);
      branches.push_back({bound_of(fixed, reduction, values, variable, value), value});
    }
    std::stable_sort(branches.begin(), branches.end(), [](const Branch& left, const Branch& right) {
      return left.bound < right.bound;
    });
    double bound = kForbidden;
    for (const Branch& branch : branches) {
      if (branch.bound >= least_ || work_cells_ > effort_.work_cells) {
        bound = std::min(bound, branch.bound);
        continue;
      }
      values[at(variable)] = branch.value;
      const double before = least_;
      const double below = solve(reduction.fixed(variable, branch.value), values);
      // What was found below lacks the values of what was eliminated above the branch.
      if (least_ < before) {
        best_[at(variable)] = branch.value;
        reduction.complete(best_);
      }
      bound = std::min(bound, std::max(branch.bound, below));
    }
    return bound;
  }

  // A bound by mini-buckets; and the assignment that it suggests, if it is the best so far.
  double bound_of(Reduction fixed, const Reduction& above, std::vector<int> values, int variable,
                  int value) {
    const Reduction whole = fixed;
    while (true) {
      const int next = fixed.next();
      if (next < 0) break;
      work_cells_ += fixed.eliminate_at_least(next, effort_.bound_cells);
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
  Search search(effort, upper_bound);
  const double bound = search.solve(Reduction(small.domain_sizes, small.factors),
                                    std::vector<int>(small.domain_sizes.size(), 0));
  solution.work_cells = search.work_cells();
  solution.values = search.best();
  for (size_t variable = 0; variable < reduced.kept.size() && !solution.values.empty();
       ++variable) {
    solution.values[variable] = reduced.kept[variable][at(solution.values[variable])];
  }
  if (search.has_found()) solution.cost = cost_of(network, solution.values);
  // Sums in another order differ in their last digits.
  solution.lower_bound = std::min({bound, solution.cost, upper_bound});
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
