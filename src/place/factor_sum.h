// The sum of some factors of a cost network as one table, one variable of which is minimised over.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "place/cost_network.h"

namespace tessera {

// Factors around `variable`; they and the sizes must outlive this.
class FactorSum {
 public:
  FactorSum(std::span<const CostFactor> factors, int variable,
            const std::vector<int>& domain_sizes);

  // The other variables, ascending.
  const std::vector<int>& others() const { return others_; }
  // Values of all variables together.
  double cells() const;
  // For each values of the others, the least sum over the values of `variable`.
  CostFactor minimum() const;
  // The first value of `variable` with the least sum, given those of the others.
  int best_value(const std::vector<int>& values) const;

 private:
  // By which each variable's value moves in a factor's table.
  struct Term {
    const double* costs = nullptr;
    int64_t stride = 0;                  // of `variable`; 0 where the factor lacks it
    std::vector<int64_t> other_strides;  // of others_
  };

  int size_of(int variable) const { return domain_sizes_[static_cast<size_t>(variable)]; }

  int variable_;
  const std::vector<int>& domain_sizes_;
  std::vector<int> others_;
  std::vector<Term> terms_;
};

// `factor` for one value of `variable`, which it need not mention and no longer does.
CostFactor restrict_factor(const CostFactor& factor, int variable, int value,
                           const std::vector<int>& domain_sizes);

// What `factor` says of `values`.
double cost_of(const CostFactor& factor, const std::vector<int>& values,
               const std::vector<int>& domain_sizes);

}  // namespace tessera
