#include "solver/explain_violation.h"

#include <cmath>

namespace tessera {
namespace {

// The maximum relative difference of sums in different orders.
constexpr double kRounding = 1e-9;

}  // namespace

std::string explain_violation(const CostNetwork& network, const NetworkSolution& solution) {
  const size_t variables = network.domain_sizes.size();
  const bool is_found = solution.cost != kForbidden;
  if (!is_found && solution.values.empty()) return "";
  if (solution.values.size() != variables) {
    return "expected values of " + std::to_string(variables) + " variables, found " +
           std::to_string(solution.values.size());
  }
  for (size_t variable = 0; variable < variables; ++variable) {
    const int value = solution.values[variable];
    if (value >= 0 && value < network.domain_sizes[variable]) continue;
    return "variable " + std::to_string(variable) + " has no value " + std::to_string(value);
  }
  double sum = 0;
  for (const CostFactor& factor : network.factors) {
    size_t cell = 0;
    for (const int variable : factor.variables) {
      const auto position = static_cast<size_t>(variable);
      cell = cell * static_cast<size_t>(network.domain_sizes[position]) +
             static_cast<size_t>(solution.values[position]);
    }
    sum += factor.costs[cell];
  }
  if (!std::isfinite(sum)) return "it is forbidden";
  if (!(std::abs(sum - solution.cost) <= kRounding * std::abs(sum))) {
    return "the factors sum to " + std::to_string(sum) + ", not " + std::to_string(solution.cost);
  }
  if (solution.lower_bound > solution.cost + kRounding * std::abs(solution.cost)) {
    return "the lower bound is above the cost";
  }
  return "";
}

}  // namespace tessera
