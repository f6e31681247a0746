// A cost network from which variables are eliminated one by one.
#pragma once

#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "solver/cost_network.h"

namespace tessera {

class Reduction {
 public:
  Reduction(std::vector<int> domain_sizes, std::vector<CostFactor> factors);
  explicit Reduction(const CostNetwork& network)
      : Reduction(network.domain_sizes, network.factors) {}

  // The variable whose elimination makes the smallest table; -1 if none is left.
  int next();
  // The number of cells that eliminating `variable` visits.
  double score(int variable) const { return scores_[static_cast<size_t>(variable)]; }

  // Returns the number of cells visited.
  double eliminate(int variable);
  // Like eliminate(), but with several tables of at most `cells` each (mini-buckets): the result is
  // a lower bound of the network.
  double eliminate_by_mini_buckets(int variable, double cells);
  // Computes the values of the eliminated variables, given those of the others in `values`.
  void complete(std::vector<int>& values) const;

  double constant() const { return constant_; }
  const std::vector<int>& domain_sizes() const { return domain_sizes_; }
  double cost_of_left(const std::vector<int>& values) const;
  // The total size of the remaining tables.
  double cells_left() const;
  // The variable in the most tables; the first one if several are in as many.
  int highest_degree_variable() const;
  // The remaining network with `variable` fixed at `value`: its domain has one value then.
  Reduction fixed(int variable, int value) const;
  // The remaining network, without constant(), and its variables.
  std::pair<CostNetwork, std::vector<int>> left() const;

 private:
  // An eliminated variable and the factors that contained it, which determine its value once the
  // others are known.
  struct Eliminated {
    int variable = 0;
    std::vector<CostFactor> factors;
  };

  void add(CostFactor factor);
  std::vector<CostFactor> take_bucket(int variable);
  void close(int variable, const std::vector<int>& neighbours, std::vector<CostFactor> bucket);
  void rescore(int variable);

  std::vector<int> domain_sizes_;
  std::vector<CostFactor> factors_;  // without costs if it was removed
  std::vector<std::vector<size_t>> factors_of_;
  std::vector<bool> is_left_;
  std::vector<double> scores_;
  double constant_ = 0;
  std::vector<Eliminated> eliminated_;
  using Scored = std::pair<double, int>;
  std::priority_queue<Scored, std::vector<Scored>, std::greater<>> queue_;
};

}  // namespace tessera
