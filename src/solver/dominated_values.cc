#include "solver/dominated_values.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/containers/at.h"

namespace tessera {
namespace {

// For variables with more values, comparing all pairs does not pay.
constexpr int kMaxValues = 64;

// A factor seen from one of its variables: cell (outer, value, inner).
struct View {
  const double* costs = nullptr;
  int64_t outer = 1;
  int64_t size = 1;
  int64_t inner = 1;
};

View view_of(const CostFactor& factor, int variable, const std::vector<int>& sizes) {
  View view;
  view.costs = factor.costs.data();
  bool is_behind = false;
  for (const int other : factor.variables) {
    if (other == variable) {
      view.size = sizes[at(other)];
      is_behind = true;
    } else {
      (is_behind ? view.inner : view.outer) *= sizes[at(other)];
    }
  }
  return view;
}

// The maximum by which value `b` costs more than value `a`; -infinity if `a` is always forbidden.
double max_excess(const View& view, int a, int b) {
  double highest = -kForbidden;
  for (int64_t outer = 0; outer < view.outer; ++outer) {
    const double* row_a = view.costs + (outer * view.size + a) * view.inner;
    const double* row_b = view.costs + (outer * view.size + b) * view.inner;
    for (int64_t inner = 0; inner < view.inner; ++inner) {
      if (row_a[inner] == kForbidden) continue;
      highest = std::max(highest, row_b[inner] - row_a[inner]);
    }
  }
  return highest;
}

// `factor` restricted to the values of one variable in `keeps`.
CostFactor select_values(const CostFactor& factor, int variable, const std::vector<int>& keeps,
                         const std::vector<int>& sizes) {
  const View view = view_of(factor, variable, sizes);
  CostFactor made;
  made.variables = factor.variables;
  for (int64_t outer = 0; outer < view.outer; ++outer) {
    for (const int value : keeps) {
      const double* row = view.costs + (outer * view.size + value) * view.inner;
      made.costs.insert(made.costs.end(), row, row + view.inner);
    }
  }
  return made;
}

class Remover {
 public:
  explicit Remover(const CostNetwork& network)
      : reduced_{network, {}}, factors_of_(network.domain_sizes.size()) {
    for (const int size : network.domain_sizes) {
      std::vector<int>& kept = reduced_.kept.emplace_back(at(size));
      std::iota(kept.begin(), kept.end(), 0);
    }
    for (size_t index = 0; index < network.factors.size(); ++index) {
      for (const int variable : network.factors[index].variables) {
        factors_of_[at(variable)].push_back(index);
      }
    }
  }

  ReducedNetwork take() {
    const auto count = static_cast<int>(factors_of_.size());
    std::vector<bool> is_waiting(at(count), true);
    std::vector<int> waiting(at(count));
    std::iota(waiting.rbegin(), waiting.rend(), 0);
    while (!waiting.empty()) {
      const int variable = waiting.back();
      waiting.pop_back();
      is_waiting[at(variable)] = false;
      if (!shrink(variable)) continue;
      for (const size_t factor : factors_of_[at(variable)]) {
        for (const int other : reduced_.network.factors[factor].variables) {
          if (other == variable || is_waiting[at(other)]) continue;
          is_waiting[at(other)] = true;
          waiting.push_back(other);
        }
      }
    }
    // A variable with one value left is dropped from all tables, which may make a network narrow
    // enough.
    for (CostFactor& factor : reduced_.network.factors) {
      std::erase_if(factor.variables,
                    [&](int variable) { return reduced_.network.domain_sizes[at(variable)] == 1; });
    }
    return std::move(reduced_);
  }

 private:
  // By value, the minimum cost in the factor; kForbidden if it is always forbidden.
  static std::vector<double> minimum_costs(const View& view) {
    std::vector<double> minima(static_cast<size_t>(view.size), kForbidden);
    for (int64_t outer = 0; outer < view.outer; ++outer) {
      for (int64_t value = 0; value < view.size; ++value) {
        const double* row = view.costs + (outer * view.size + value) * view.inner;
        double& cost = minima[static_cast<size_t>(value)];
        for (int64_t inner = 0; inner < view.inner; ++inner) cost = std::min(cost, row[inner]);
      }
    }
    return minima;
  }

  bool shrink(int variable) {
    CostNetwork& network = reduced_.network;
    const int size = network.domain_sizes[at(variable)];
    if (size < 2 || size > kMaxValues) return false;
    std::vector<View> views;
    std::vector<std::vector<double>> minima;
    for (const size_t factor : factors_of_[at(variable)]) {
      views.push_back(view_of(network.factors[factor], variable, network.domain_sizes));
      minima.push_back(minimum_costs(views.back()));
    }
    std::vector<int> keeps;
    std::vector<bool> is_removed(at(size), false);
    for (int a = 0; a < size; ++a) {
      for (int b = 0; b < size && !is_removed[at(a)]; ++b) {
        if (b == a || is_removed[at(b)]) continue;
        is_removed[at(a)] = is_dominated(views, minima, a, b);
      }
      if (!is_removed[at(a)]) keeps.push_back(a);
    }
    if (keeps.size() == at(size)) return false;
    for (const size_t factor : factors_of_[at(variable)]) {
      network.factors[factor] =
          select_values(network.factors[factor], variable, keeps, network.domain_sizes);
    }
    std::vector<int>& kept = reduced_.kept[at(variable)];
    std::vector<int> left;
    for (const int value : keeps) left.push_back(kept[at(value)]);
    kept = std::move(left);
    network.domain_sizes[at(variable)] = static_cast<int>(kept.size());
    return true;
  }

  static bool is_dominated(const std::vector<View>& views,
                           const std::vector<std::vector<double>>& minima, int a, int b) {
    // A quick test that decides most pairs: if `a` costs its minimum, `b` costs at least its own
    // minimum.
    double lower_bound = 0;
    for (const std::vector<double>& costs : minima) {
      if (costs[at(a)] == kForbidden) return true;
      lower_bound += costs[at(b)] - costs[at(a)];
    }
    if (lower_bound > 0) return false;
    double above = 0;
    for (const View& view : views) {
      above += max_excess(view, a, b);
      if (above == kForbidden) return false;
    }
    return above <= 0;
  }

  ReducedNetwork reduced_;
  std::vector<std::vector<size_t>> factors_of_;
};

}  // namespace

ReducedNetwork remove_dominated_values(const CostNetwork& network) {
  return Remover(network).take();
}

}  // namespace tessera
