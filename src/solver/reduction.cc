#include "solver/reduction.h"

#include <algorithm>

#include "base/containers/at.h"
#include "solver/factor_sum.h"

namespace tessera {

Reduction::Reduction(std::vector<int> domain_sizes, std::vector<CostFactor> factors)
    : domain_sizes_(std::move(domain_sizes)),
      factors_of_(domain_sizes_.size()),
      is_left_(domain_sizes_.size(), true),
      scores_(domain_sizes_.size(), 0) {
  for (CostFactor& factor : factors) add(std::move(factor));
  for (size_t variable = 0; variable < domain_sizes_.size(); ++variable) {
    rescore(static_cast<int>(variable));
  }
}

int Reduction::next() {
  while (!queue_.empty()) {
    const auto [score, variable] = queue_.top();
    if (is_left_[at(variable)] && scores_[at(variable)] == score) return variable;
    queue_.pop();
  }
  return -1;
}

double Reduction::eliminate(int variable) {
  std::vector<CostFactor> bucket = take_bucket(variable);
  const FactorSum sum(bucket, variable, domain_sizes_);
  add(sum.minimum());
  const double cells = sum.cells();
  close(variable, sum.others(), std::move(bucket));
  return cells;
}

double Reduction::eliminate_by_mini_buckets(int variable, double cells) {
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

void Reduction::complete(std::vector<int>& values) const {
  for (auto step = eliminated_.rbegin(); step != eliminated_.rend(); ++step) {
    values[at(step->variable)] =
        FactorSum(step->factors, step->variable, domain_sizes_).best_value(values);
  }
}

double Reduction::cost_of_left(const std::vector<int>& values) const {
  double sum = constant_;
  for (const CostFactor& factor : factors_) {
    if (!factor.costs.empty()) sum += cost_of(factor, values, domain_sizes_);
  }
  return sum;
}

int Reduction::highest_degree_variable() const {
  int best = -1;
  size_t max_degree = 0;
  for (size_t variable = 0; variable < is_left_.size(); ++variable) {
    if (!is_left_[variable]) continue;
    const size_t degree = factors_of_[variable].size();
    if (best >= 0 && degree <= max_degree) continue;
    best = static_cast<int>(variable);
    max_degree = degree;
  }
  return best;
}

Reduction Reduction::fixed(int variable, int value) const {
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
  // Its value is fixed, so completing must not change it.
  made.is_left_[at(variable)] = false;
  return made;
}

void Reduction::add(CostFactor factor) {
  if (factor.variables.empty()) {
    constant_ += factor.costs[0];
    return;
  }
  // Keeps one table for each set of variables.
  for (const size_t index : factors_of_[at(factor.variables[0])]) {
    CostFactor& known = factors_[index];
    if (known.variables != factor.variables) continue;
    for (size_t cell = 0; cell < known.costs.size(); ++cell) {
      known.costs[cell] += factor.costs[cell];
    }
    return;
  }
  for (const int variable : factor.variables) factors_of_[at(variable)].push_back(factors_.size());
  factors_.push_back(std::move(factor));
}

std::vector<CostFactor> Reduction::take_bucket(int variable) {
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

void Reduction::close(int variable, const std::vector<int>& neighbours,
                      std::vector<CostFactor> bucket) {
  is_left_[at(variable)] = false;
  for (const int neighbour : neighbours) rescore(neighbour);
  eliminated_.push_back({variable, std::move(bucket)});
}

void Reduction::rescore(int variable) {
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

double Reduction::cells_left() const {
  double cells = 0;
  for (const CostFactor& factor : factors_) cells += static_cast<double>(factor.costs.size());
  return cells;
}

std::pair<CostNetwork, std::vector<int>> Reduction::left() const {
  CostNetwork network;
  std::vector<int> variables;
  std::vector<int> new_index(is_left_.size(), -1);
  for (size_t variable = 0; variable < is_left_.size(); ++variable) {
    if (!is_left_[variable]) continue;
    new_index[variable] = static_cast<int>(variables.size());
    variables.push_back(static_cast<int>(variable));
    network.domain_sizes.push_back(domain_sizes_[variable]);
  }
  for (const CostFactor& factor : factors_) {
    if (factor.costs.empty()) continue;
    CostFactor& copy = network.factors.emplace_back(factor);
    for (int& variable : copy.variables) variable = new_index[at(variable)];
  }
  return {std::move(network), std::move(variables)};
}

}  // namespace tessera
