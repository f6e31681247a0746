#include "solver/factor_sum.h"

#include <algorithm>

#include "base/containers/at.h"

namespace tessera {
namespace {

// The change of a table's index for a step of each of its variables.
std::vector<int64_t> strides_of(const CostFactor& factor, const std::vector<int>& domain_sizes) {
  std::vector<int64_t> strides(factor.variables.size());
  int64_t stride = 1;
  for (size_t position = strides.size(); position-- > 0;) {
    strides[position] = stride;
    stride *= domain_sizes[at(factor.variables[position])];
  }
  return strides;
}

}  // namespace

FactorSum::FactorSum(std::span<const CostFactor> factors, int variable,
                     const std::vector<int>& domain_sizes)
    : variable_(variable), domain_sizes_(domain_sizes) {
  for (const CostFactor& factor : factors) {
    others_.insert(others_.end(), factor.variables.begin(), factor.variables.end());
  }
  std::sort(others_.begin(), others_.end());
  others_.erase(std::unique(others_.begin(), others_.end()), others_.end());
  std::erase(others_, variable);
  for (const CostFactor& factor : factors) {
    Term& term = terms_.emplace_back();
    term.costs = factor.costs.data();
    term.other_strides.assign(others_.size(), 0);
    const std::vector<int64_t> strides = strides_of(factor, domain_sizes);
    for (size_t position = 0; position < strides.size(); ++position) {
      if (factor.variables[position] == variable) {
        term.stride = strides[position];
        continue;
      }
      const auto found =
          std::lower_bound(others_.begin(), others_.end(), factor.variables[position]);
      term.other_strides[static_cast<size_t>(found - others_.begin())] = strides[position];
    }
  }
}

double FactorSum::cells() const {
  double cells = size_of(variable_);
  for (const int other : others_) cells *= size_of(other);
  return cells;
}

CostFactor FactorSum::minimum() const {
  CostFactor result;
  result.variables = others_;
  result.costs.reserve(static_cast<size_t>(cells() / size_of(variable_)));
  // The last of the others varies fastest: one line has all of its values.
  const size_t outer_count = others_.empty() ? 0 : others_.size() - 1;
  const size_t line = others_.empty() ? 1 : at(size_of(others_.back()));
  std::vector<int> values(outer_count, 0);
  std::vector<int64_t> offsets(terms_.size(), 0);
  std::vector<double> sums(line);
  std::vector<double> lowest(line);
  while (true) {
    for (int value = 0; value < size_of(variable_); ++value) {
      sum_line(offsets, value, sums);
      for (size_t place = 0; place < line; ++place) {
        lowest[place] = value == 0 ? sums[place] : std::min(lowest[place], sums[place]);
      }
    }
    result.costs.insert(result.costs.end(), lowest.begin(), lowest.end());
    // Advances to the next line.
    size_t position = outer_count;
    while (position-- > 0) {
      const bool is_wrapped = ++values[position] == size_of(others_[position]);
      const int64_t steps = is_wrapped ? 1 - values[position] : 1;
      for (size_t index = 0; index < terms_.size(); ++index) {
        offsets[index] += steps * terms_[index].other_strides[position];
      }
      if (!is_wrapped) break;
      values[position] = 0;
    }
    if (position == static_cast<size_t>(-1)) return result;
  }
}

void FactorSum::sum_line(const std::vector<int64_t>& offsets, int value,
                         std::vector<double>& sums) const {
  std::fill(sums.begin(), sums.end(), 0.0);
  for (size_t index = 0; index < terms_.size(); ++index) {
    const Term& term = terms_[index];
    const double* costs = term.costs + offsets[index] + value * term.stride;
    const int64_t stride = others_.empty() ? 0 : term.other_strides.back();
    // The frequent strides have loops of their own, which compilers vectorize.
    if (stride == 0) {
      for (double& sum : sums) sum += *costs;
    } else if (stride == 1) {
      for (size_t place = 0; place < sums.size(); ++place) sums[place] += costs[place];
    } else {
      for (size_t place = 0; place < sums.size(); ++place) {
        sums[place] += costs[static_cast<int64_t>(place) * stride];
      }
    }
  }
}

int FactorSum::best_value(const std::vector<int>& values) const {
  int best = 0;
  double lowest = kForbidden;
  for (int value = 0; value < size_of(variable_); ++value) {
    double sum = 0;
    for (const Term& term : terms_) {
      int64_t offset = value * term.stride;
      for (size_t position = 0; position < others_.size(); ++position) {
        offset += values[at(others_[position])] * term.other_strides[position];
      }
      sum += term.costs[offset];
    }
    if (sum >= lowest) continue;
    lowest = sum;
    best = value;
  }
  return best;
}

CostFactor restrict_factor(const CostFactor& factor, int variable, int value,
                           const std::vector<int>& domain_sizes) {
  const auto found = std::find(factor.variables.begin(), factor.variables.end(), variable);
  if (found == factor.variables.end()) return factor;
  const auto position = static_cast<size_t>(found - factor.variables.begin());
  const int64_t stride = strides_of(factor, domain_sizes)[position];
  const int64_t size = domain_sizes[at(variable)];
  CostFactor result;
  result.variables = factor.variables;
  result.variables.erase(result.variables.begin() + static_cast<int64_t>(position));
  const auto cells = static_cast<int64_t>(factor.costs.size());
  for (int64_t block = 0; block < cells; block += stride * size) {
    const auto first = factor.costs.begin() + block + value * stride;
    result.costs.insert(result.costs.end(), first, first + stride);
  }
  return result;
}

double cost_of(const CostFactor& factor, const std::vector<int>& values,
               const std::vector<int>& domain_sizes) {
  const std::vector<int64_t> strides = strides_of(factor, domain_sizes);
  int64_t offset = 0;
  for (size_t position = 0; position < strides.size(); ++position) {
    offset += strides[position] * values[at(factor.variables[position])];
  }
  return factor.costs[static_cast<size_t>(offset)];
}

}  // namespace tessera
