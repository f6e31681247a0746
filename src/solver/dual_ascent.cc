#include "solver/dual_ascent.h"

#include <algorithm>
#include <numeric>

#include "base/containers/at.h"

namespace tessera {

DualAscent::DualAscent(const CostNetwork& network)
    : sizes_(network.domain_sizes), rank_(sizes_.size()), tables_of_(sizes_.size()) {
  for (const int size : sizes_) singles_.emplace_back(at(size), 0.0);
  for (const CostFactor& factor : network.factors) {
    if (factor.variables.empty()) {
      constant_ += factor.costs[0];
      continue;
    }
    if (factor.variables.size() == 1) {
      std::vector<double>& single = singles_[at(factor.variables[0])];
      for (size_t value = 0; value < single.size(); ++value) single[value] += factor.costs[value];
      continue;
    }
    Table table = {factor.variables, factor.costs, std::vector<int>(factor.variables.size())};
    int stride = 1;
    for (size_t position = table.strides.size(); position-- > 0;) {
      table.strides[position] = stride;
      stride *= sizes_[at(table.variables[position])];
      tables_of_[at(table.variables[position])].push_back({tables_.size(), position});
    }
    tables_.push_back(std::move(table));
  }
  order_variables();
  forbid_dead_values();
}

// Breadth-first order, so that costs move along paths.
void DualAscent::order_variables() {
  std::vector<bool> is_seen(sizes_.size(), false);
  for (size_t start = 0; start < sizes_.size(); ++start) {
    if (is_seen[start]) continue;
    is_seen[start] = true;
    order_.push_back(static_cast<int>(start));
    for (size_t next = order_.size() - 1; next < order_.size(); ++next) {
      for (const Incidence& incidence : tables_of_[at(order_[next])]) {
        for (const int other : tables_[incidence.table].variables) {
          if (is_seen[at(other)]) continue;
          is_seen[at(other)] = true;
          order_.push_back(other);
        }
      }
    }
  }
  for (size_t rank = 0; rank < order_.size(); ++rank) {
    rank_[at(order_[rank])] = static_cast<int>(rank);
  }
  const auto is_before = [&](int left, int right) { return rank_[at(left)] < rank_[at(right)]; };
  for (Table& table : tables_) {
    table.first = *std::min_element(table.variables.begin(), table.variables.end(), is_before);
    table.last = *std::max_element(table.variables.begin(), table.variables.end(), is_before);
  }
}

// For each value of the variable at `position`, the minimum cell.
void DualAscent::minimum_by_value(const Table& table, size_t position,
                                  std::vector<double>& minima) const {
  const auto size = at(sizes_[at(table.variables[position])]);
  const auto inner = at(table.strides[position]);
  minima.assign(size, kForbidden);
  for (size_t block = 0; block < table.costs.size(); block += inner * size) {
    for (size_t value = 0; value < size; ++value) {
      const double* row = table.costs.data() + block + value * inner;
      double lowest = minima[value];
      for (size_t cell = 0; cell < inner; ++cell) lowest = std::min(lowest, row[cell]);
      minima[value] = lowest;
    }
  }
}

void DualAscent::add_by_value(Table& table, size_t position, const std::vector<double>& amounts,
                              double factor) {
  const auto size = at(sizes_[at(table.variables[position])]);
  const auto inner = at(table.strides[position]);
  for (size_t block = 0; block < table.costs.size(); block += inner * size) {
    for (size_t value = 0; value < size; ++value) {
      // Skips dead values, because infinite amounts cannot be moved back.
      if (amounts[value] == kForbidden) continue;
      double* row = table.costs.data() + block + value * inner;
      for (size_t cell = 0; cell < inner; ++cell) row[cell] += factor * amounts[value];
    }
  }
}

// A value that one table always forbids is forbidden in all tables.
void DualAscent::forbid_dead_values() {
  bool is_changed = true;
  while (is_changed) {
    is_changed = false;
    for (Table& table : tables_) is_changed = forbid_dead_values_of(table) || is_changed;
  }
  for (const std::vector<double>& single : singles_) {
    is_impossible_ = is_impossible_ || std::all_of(single.begin(), single.end(),
                                                   [](double cost) { return cost == kForbidden; });
  }
}

bool DualAscent::forbid_dead_values_of(Table& table) {
  bool is_changed = false;
  for (size_t position = 0; position < table.variables.size(); ++position) {
    std::vector<double>& single = singles_[at(table.variables[position])];
    minimum_by_value(table, position, minima_);
    for (size_t value = 0; value < single.size(); ++value) {
      if (minima_[value] == kForbidden && single[value] != kForbidden) {
        single[value] = kForbidden;
        is_changed = true;
      }
      if (single[value] != kForbidden || minima_[value] == kForbidden) continue;
      const auto inner = at(table.strides[position]);
      for (size_t block = value * inner; block < table.costs.size();
           block += inner * single.size()) {
        std::fill_n(table.costs.begin() + static_cast<int64_t>(block), inner, kForbidden);
      }
      is_changed = true;
    }
  }
  return is_changed;
}

void DualAscent::visit(int variable, bool is_forward) {
  std::vector<double>& single = singles_[at(variable)];
  size_t ahead = 0;
  size_t behind = 0;
  for (const Incidence& incidence : tables_of_[at(variable)]) {
    Table& table = tables_[incidence.table];
    ahead += table.last != variable ? 1 : 0;
    behind += table.first != variable ? 1 : 0;
    cells_ += static_cast<double>(2 * table.costs.size());
    // A table whose other variables are all ahead has already contributed in the pass in the other
    // direction.
    if (variable == (is_forward ? table.first : table.last)) continue;
    minimum_by_value(table, incidence.position, minima_);
    add_by_value(table, incidence.position, minima_, -1);
    for (size_t value = 0; value < single.size(); ++value) single[value] += minima_[value];
  }
  const double lowest = *std::min_element(single.begin(), single.end());
  constant_ += lowest;
  for (double& cost : single) cost -= lowest;
  const size_t receivers = is_forward ? ahead : behind;
  if (receivers == 0) return;
  const double share = 1.0 / static_cast<double>(std::max(ahead, behind));
  for (const Incidence& incidence : tables_of_[at(variable)]) {
    Table& table = tables_[incidence.table];
    if (variable == (is_forward ? table.last : table.first)) continue;
    add_by_value(table, incidence.position, single, share);
  }
  const double kept = std::max(0.0, 1 - share * static_cast<double>(receivers));
  for (double& cost : single) cost = cost == kForbidden ? kForbidden : cost * kept;
}

double DualAscent::ascend() {
  if (is_impossible_) return 0;
  const double before = cells_;
  for (const int variable : order_) visit(variable, true);
  for (auto variable = order_.rbegin(); variable != order_.rend(); ++variable) {
    visit(*variable, false);
  }
  return cells_ - before;
}

double DualAscent::bound() const {
  if (is_impossible_) return kForbidden;
  double sum = constant_;
  for (const std::vector<double>& single : singles_) {
    sum += *std::min_element(single.begin(), single.end());
  }
  for (const Table& table : tables_) {
    sum += *std::min_element(table.costs.begin(), table.costs.end());
  }
  return sum;
}

CostNetwork DualAscent::network() const {
  CostNetwork network = {sizes_, {}};
  for (size_t variable = 0; variable < singles_.size(); ++variable) {
    network.factors.push_back({{static_cast<int>(variable)}, singles_[variable]});
  }
  for (const Table& table : tables_) network.factors.push_back({table.variables, table.costs});
  return network;
}

void DualAscent::forbid_above(double limit) {
  // Rounding errors must not forbid a value that is equally good.
  const double room = (limit - bound()) * (1 + 1e-9) + 1e-12 * limit;
  for (size_t variable = 0; variable < singles_.size(); ++variable) {
    std::vector<double>& single = singles_[variable];
    std::vector<double> above = single;
    for (const Incidence& incidence : tables_of_[variable]) {
      const Table& table = tables_[incidence.table];
      minimum_by_value(table, incidence.position, minima_);
      const double lowest = *std::min_element(minima_.begin(), minima_.end());
      for (size_t value = 0; value < above.size(); ++value) above[value] += minima_[value] - lowest;
    }
    const double lowest = *std::min_element(single.begin(), single.end());
    for (size_t value = 0; value < single.size(); ++value) {
      if (above[value] - lowest > room) single[value] = kForbidden;
    }
    is_impossible_ = is_impossible_ || lowest == kForbidden;
  }
  if (!is_impossible_) forbid_dead_values();
}

std::vector<int> DualAscent::decode() const {
  std::vector<int> values(sizes_.size(), -1);
  for (const int variable : order_) {
    std::vector<double> costs = singles_[at(variable)];
    for (const Incidence& incidence : tables_of_[at(variable)]) {
      const Table& table = tables_[incidence.table];
      std::vector<double> minima(costs.size(), kForbidden);
      for (size_t cell = 0; cell < table.costs.size(); ++cell) {
        size_t own = 0;
        bool is_open = true;
        for (size_t index = 0; index < table.variables.size() && is_open; ++index) {
          const int other = table.variables[index];
          const auto value = static_cast<int>(cell) / table.strides[index] % sizes_[at(other)];
          if (index == incidence.position) own = at(value);
          is_open = values[at(other)] < 0 || values[at(other)] == value;
        }
        if (is_open) minima[own] = std::min(minima[own], table.costs[cell]);
      }
      for (size_t value = 0; value < costs.size(); ++value) costs[value] += minima[value];
    }
    values[at(variable)] =
        static_cast<int>(std::min_element(costs.begin(), costs.end()) - costs.begin());
  }
  return values;
}

}  // namespace tessera
