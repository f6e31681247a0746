#include "place/placement_network.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/containers/at.h"

namespace tessera {
namespace {

bool contains(const std::vector<int>& set, int element) {
  return std::find(set.begin(), set.end(), element) != set.end();
}

bool includes(const std::vector<int>& whole, const std::vector<int>& part) {
  return std::includes(whole.begin(), whole.end(), part.begin(), part.end());
}

// The node whose variable pays for a candidate.
int paying_node(const PlacementCandidate& candidate) { return candidate.nodes.back(); }

using Ports = std::vector<std::pair<int, int>>;

Ports sorted_ports(const std::vector<PlacementPort>& ports) {
  Ports sorted;
  for (const PlacementPort& port : ports) sorted.emplace_back(port.value, port.layout);
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

// By candidate: whether it is allowed and the cheapest one with its nodes and ports.
std::vector<bool> find_usable(const PlacementProblem& problem) {
  std::map<std::tuple<std::vector<int>, Ports, Ports>, size_t> cheapest;
  for (size_t index = 0; index < problem.candidates.size(); ++index) {
    const PlacementCandidate& candidate = problem.candidates[index];
    if (!problem.is_forbidden.empty() && problem.is_forbidden[index]) continue;
    if (candidate.workspace_bytes > problem.workspace_bytes_limit) continue;
    const auto [entry, is_new] = cheapest.try_emplace(
        {candidate.nodes, sorted_ports(candidate.inputs), sorted_ports(candidate.outputs)}, index);
    size_t& best = entry->second;
    if (!is_new && candidate.seconds < problem.candidates[best].seconds) best = index;
  }
  std::vector<bool> is_usable(problem.candidates.size(), false);
  for (const auto& [key, index] : cheapest) is_usable[index] = true;
  return is_usable;
}

}  // namespace

PlacementNetwork::PlacementNetwork(const PlacementProblem& problem)
    : problem_(problem),
      is_usable_(find_usable(problem)),
      node_choices_(problem.nodes.size()),
      producer_(at(problem.value_count), kNoIndex),
      readers_(at(problem.value_count)) {
  for (size_t node = 0; node < problem.nodes.size(); ++node) {
    for (const int value : problem.nodes[node].outputs) {
      producer_[at(value)] = static_cast<int>(node);
    }
    for (const int value : problem.nodes[node].inputs) {
      if (!contains(readers_[at(value)], static_cast<int>(node))) {
        readers_[at(value)].push_back(static_cast<int>(node));
      }
    }
  }
  list_node_choices();
  add_prices();
  add_group_factors();
  for (int value = 0; value < problem.value_count; ++value) {
    if (!problem.is_constant[at(value)]) add_value(value);
  }
}

void PlacementNetwork::list_node_choices() {
  for (size_t index = 0; index < problem_.candidates.size(); ++index) {
    if (!is_usable_[index]) continue;
    for (const int node : problem_.candidates[index].nodes) {
      node_choices_[at(node)].push_back(static_cast<int>(index));
    }
  }
  for (const std::vector<int>& choices : node_choices_) {
    network_.domain_sizes.push_back(static_cast<int>(choices.size()));
  }
}

void PlacementNetwork::add_prices() {
  for (size_t node = 0; node < node_choices_.size(); ++node) {
    CostFactor factor = {{static_cast<int>(node)}, {}};
    for (const int index : node_choices_[node]) {
      const PlacementCandidate& candidate = problem_.candidates[at(index)];
      const bool pays = paying_node(candidate) == static_cast<int>(node);
      factor.costs.push_back(pays ? candidate.seconds : 0);
    }
    network_.factors.push_back(std::move(factor));
  }
}

void PlacementNetwork::add_pair(int first, int second, std::vector<double> costs) {
  network_.factors.push_back({{first, second}, std::move(costs)});
}

// A group must be chosen at all of its nodes or at none. Factors over each pair of consecutive
// nodes express that.
void PlacementNetwork::add_group_factors() {
  std::map<std::pair<int, int>, std::vector<int>> groups;
  for (size_t index = 0; index < problem_.candidates.size(); ++index) {
    if (!is_usable_[index]) continue;
    const std::vector<int>& nodes = problem_.candidates[index].nodes;
    for (size_t position = 1; position < nodes.size(); ++position) {
      groups[{nodes[position - 1], nodes[position]}].push_back(static_cast<int>(index));
    }
  }
  for (const auto& [pair, candidates] : groups) {
    std::vector<double> costs;
    for (const int first : node_choices_[at(pair.first)]) {
      for (const int second : node_choices_[at(pair.second)]) {
        const bool is_in_both = first == second;
        const bool is_in_none = !contains(candidates, first) && !contains(candidates, second);
        costs.push_back(is_in_both || is_in_none ? 0 : kForbidden);
      }
    }
    add_pair(pair.first, pair.second, std::move(costs));
  }
}

int PlacementNetwork::source_of(int value, int candidate) const {
  for (const PlacementPort& port : problem_.candidates[at(candidate)].outputs) {
    if (port.value == value) return port.layout;
  }
  return kNoSource;
}

std::vector<int> PlacementNetwork::wanted_by(int value, int candidate) const {
  std::set<int> layouts;
  for (const PlacementPort& port : problem_.candidates[at(candidate)].inputs) {
    if (port.value == value) layouts.insert(port.layout);
  }
  return {layouts.begin(), layouts.end()};
}

void PlacementNetwork::add_value(int value) {
  const bool is_result = contains(problem_.results, value);
  std::set<int> wanted;
  const int fed = fed_layout(problem_, value);
  if (is_result) wanted.insert(fed);
  for (const int node : readers_[at(value)]) {
    for (const int candidate : node_choices_[at(node)]) {
      for (const int layout : wanted_by(value, candidate)) wanted.insert(layout);
    }
  }
  if (wanted.empty()) return;
  // The layouts in which the value may be produced.
  const int producer = producer_[at(value)];
  std::vector<int> source_by_choice = {fed};
  if (producer != kNoIndex) {
    source_by_choice.clear();
    for (const int candidate : node_choices_[at(producer)]) {
      source_by_choice.push_back(source_of(value, candidate));
    }
  }
  std::vector<ValueChoice> choices;
  const std::set<int> distinct(source_by_choice.begin(), source_by_choice.end());
  for (const int source : distinct) {
    for (ValueChoice& choice :
         list_choices(problem_, value, source, {wanted.begin(), wanted.end()})) {
      if (!is_result || contains(choice.layouts, fed)) choices.push_back(std::move(choice));
    }
  }
  const auto variable = static_cast<int>(network_.domain_sizes.size());
  network_.domain_sizes.push_back(static_cast<int>(choices.size()));
  CostFactor prices = {{variable}, {}};
  for (const ValueChoice& choice : choices) prices.costs.push_back(choice.seconds);
  network_.factors.push_back(std::move(prices));
  // Variables of nodes have lower numbers than those of values, so they vary slowest in each table.
  if (producer != kNoIndex) {
    std::vector<double> costs;
    for (const int source : source_by_choice) {
      for (const ValueChoice& choice : choices) {
        costs.push_back(choice.source == source ? 0 : kForbidden);
      }
    }
    add_pair(producer, variable, std::move(costs));
  }
  for (const int node : readers_[at(value)]) {
    std::vector<double> costs;
    for (const int reader : node_choices_[at(node)]) {
      const std::vector<int> needed = wanted_by(value, reader);
      for (const ValueChoice& choice : choices) {
        costs.push_back(includes(choice.layouts, needed) ? 0 : kForbidden);
      }
    }
    add_pair(node, variable, std::move(costs));
  }
  value_choices_.push_back(std::move(choices));
  value_of_.push_back(value);
  wanted_.emplace_back(wanted.begin(), wanted.end());
}

CostNetwork PlacementNetwork::state(const std::vector<Decision>& decisions) const {
  CostNetwork network = network_;
  for (const Decision& decision : decisions) {
    const int node = paying_node(problem_.candidates[at(decision.candidate)]);
    CostFactor& factor = network.factors[at(node)];
    for (size_t position = 0; position < factor.costs.size(); ++position) {
      const bool is_decided = node_choices_[at(node)][position] == decision.candidate;
      if (is_decided != decision.is_chosen) factor.costs[position] = kForbidden;
    }
  }
  return network;
}

bool PlacementNetwork::add_nogood(const std::vector<int>& candidates) {
  constexpr size_t kMaxCells = 1 << 14;
  std::set<int> payers;
  for (const int index : candidates) payers.insert(paying_node(problem_.candidates[at(index)]));
  const std::vector<int> variables(payers.begin(), payers.end());
  size_t cells = 1;
  for (const int node : variables) {
    cells *= node_choices_[at(node)].size();
    if (cells > kMaxCells) return false;
  }
  CostFactor factor = {variables, {}};
  for (size_t cell = 0; cell < cells; ++cell) {
    std::vector<int> all;
    size_t rest = cell;
    for (size_t position = variables.size(); position-- > 0;) {
      const std::vector<int>& choices = node_choices_[at(variables[position])];
      all.push_back(choices[rest % choices.size()]);
      rest /= choices.size();
    }
    const bool has_all = std::all_of(candidates.begin(), candidates.end(),
                                     [&](int index) { return contains(all, index); });
    factor.costs.push_back(has_all ? kForbidden : 0);
  }
  network_.factors.push_back(std::move(factor));
  return true;
}

std::vector<int> PlacementNetwork::chosen(const std::vector<int>& values) const {
  std::vector<int> chosen;
  for (size_t node = 0; node < node_choices_.size(); ++node) {
    const int index = node_choices_[node][at(values[node])];
    if (paying_node(problem_.candidates[at(index)]) == static_cast<int>(node))
      chosen.push_back(index);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<PlacementConversion> PlacementNetwork::conversions(
    const std::vector<int>& values) const {
  std::vector<PlacementConversion> made;
  for (size_t position = 0; position < value_of_.size(); ++position) {
    const int choice = values[node_choices_.size() + position];
    const std::vector<PlacementConversion> some = conversions_of(
        problem_, value_of_[position], wanted_[position], value_choices_[position][at(choice)]);
    made.insert(made.end(), some.begin(), some.end());
  }
  return made;
}

}  // namespace tessera
