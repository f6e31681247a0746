// A cost network from which variables are eliminated one by one.
#pragma once

#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "place/cost_network.h"

namespace tessera {

class Reduction {
 public:
  Reduction(std::vector<int> domain_sizes, std::vector<CostFactor> factors);
  explicit Reduction(const CostNetwork& network)
      : Reduction(network.domain_sizes, network.factors) {}

  // The variable whose elimination makes the smallest table; -1 where none is left.
  int next();
  // Cells that eliminating `variable` goes through.
  double score(int variable) const { return scores_[static_cast<size_t>(variable)]; }

  // Gives the cells gone through.
  double eliminate(int variable);
  // As eliminate(), in several tables of at most `cells` each: what is left costs no more than what
  // there was, and perhaps less.
  double eliminate_at_least(int variable, double cells);
  // Values of the eliminated variables, given those of the others in `values`.
  void complete(std::vector<int>& values) const;

  double constant() const { return constant_; }
  const std::vector<int>& domain_sizes() const { return domain_sizes_; }
  double cost_of_left(const std::vector<int>& values) const;
  // Of all tables that are left.
  double cells_left() const;
  // The variable with the most neighbours; of equal ones the first.
  int busiest() const;
  // The factors that are left, with `variable` fixed at `value`: its domain has one value then.
  Reduction fixed(int variable, int value) const;
  // What is left, without constant(), and which variables these are.
  std::pair<CostNetwork, std::vector<int>> left() const;

 private:
  // A variable that was eliminated, with the factors that mention it: what its value is chosen by
  // once those of the others are known.
  struct Eliminated {
    int variable = 0;
    std::vector<CostFactor> factors;
  };

  void add(CostFactor factor);
  std::vector<CostFactor> take_bucket(int variable);
  void close(int variable, const std::vector<int>& neighbours, std::vector<CostFactor> bucket);
  void rescore(int variable);

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

}  // namespace tessera
