// The sum of some factors of a cost network, minimised over one variable.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "solver/cost_network.h"

namespace tessera {

// The sum of factors that contain `variable`. The factors and the sizes must outlive this object.
class FactorSum {
 public:
  FactorSum(std::span<const CostFactor> factors, int variable,
            const std::vector<int>& domain_sizes);

  // The other variables, ascending.
  const std::vector<int>& others() const { return others_; }
  // The number of value combinations of all variables together.
  double cells() const;
  // For all values of the others, the minimum of the sum over the values of `variable`.
  CostFactor minimum() const;
  // The first value of `variable` that minimises the sum, given the values of the others.
  int best_value(const std::vector<int>& values) const;

 private:
  // The strides of a factor's table.
  struct Term {
    const double* costs = nullptr;
    int64_t stride = 0;                  // of `variable`; 0 if the factor does not contain it
    std::vector<int64_t> other_strides;  // of others_
  };

  // Stores in `sums` the sum for `value`, for each value of the last of the others. `offsets` are
  // the terms' offsets for the values of the rest. Without others, there is one sum.
  void sum_line(const std::vector<int64_t>& offsets, int value, std::vector<double>& sums) const;
  int size_of(int variable) const { return domain_sizes_[static_cast<size_t>(variable)]; }

  int variable_;
  const std::vector<int>& domain_sizes_;
  std::vector<int> others_;
  std::vector<Term> terms_;
};

// `factor` with `variable` fixed at `value`. The factor need not contain the variable; the result
// does not.
CostFactor restrict_factor(const CostFactor& factor, int variable, int value,
                           const std::vector<int>& domain_sizes);

// The cost of `values` in `factor`.
double cost_of(const CostFactor& factor, const std::vector<int>& values,
               const std::vector<int>& domain_sizes);

}  // namespace tessera
