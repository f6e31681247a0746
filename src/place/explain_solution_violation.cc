// Replays a solution value by value and sums it up again.
#include <cmath>
#include <map>
#include <set>

#include "place/solve_placement.h"

namespace tessera {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

std::string in_layout(int value, int layout) {
  return "value " + std::to_string(value) + " in layout " + std::to_string(layout);
}

// Which nodes are computed how often, and whether everything is made before it is read.
std::string explain_order(const PlacementProblem& problem, const std::vector<int>& chosen) {
  std::vector<int> times(problem.nodes.size(), 0);
  std::vector<int> still_made_by(at(problem.value_count), 0);
  std::set<int> seen;
  for (const int index : chosen) {
    const std::string name = "candidate " + std::to_string(index);
    if (index < 0 || at(index) >= problem.candidates.size()) return name + " is not there";
    if (!seen.insert(index).second) return name + " is chosen twice";
    if (!problem.is_forbidden.empty() && problem.is_forbidden[at(index)]) {
      return name + " is forbidden";
    }
    if (problem.candidates[at(index)].workspace_bytes > problem.workspace_bytes_limit) {
      return name + " needs more workspace than is allowed";
    }
    for (const int node : problem.candidates[at(index)].nodes) ++times[at(node)];
    for (const PlacementPort& port : problem.candidates[at(index)].outputs) {
      ++still_made_by[at(port.value)];
    }
  }
  for (size_t node = 0; node < times.size(); ++node) {
    if (times[node] == 0) return "node " + std::to_string(node) + " is in no candidate";
    if (times[node] > (problem.nodes[node].is_recomputable ? 2 : 1)) {
      return "node " + std::to_string(node) + " is computed " + std::to_string(times[node]) +
             " times";
    }
  }
  for (const int index : chosen) {
    for (const PlacementPort& port : problem.candidates[at(index)].inputs) {
      if (still_made_by[at(port.value)] == 0) continue;
      return "candidate " + std::to_string(index) + " reads value " + std::to_string(port.value) +
             " before all are done that make it";
    }
    for (const PlacementPort& port : problem.candidates[at(index)].outputs) {
      --still_made_by[at(port.value)];
    }
  }
  return "";
}

// Whether all that is wanted is at hand in its layout.
std::string explain_layouts(const PlacementProblem& problem, const PlacementSolution& solution) {
  std::vector<std::set<int>> at_hand(at(problem.value_count));
  for (int value = 0; value < problem.value_count; ++value) {
    at_hand[at(value)] = {fed_layout(problem, value)};
  }
  for (const PlacementNode& node : problem.nodes) {
    for (const int value : node.outputs) at_hand[at(value)].clear();
  }
  for (const int index : solution.placement.chosen) {
    for (const PlacementPort& port : problem.candidates[at(index)].outputs) {
      at_hand[at(port.value)].insert(port.layout);
    }
  }
  for (const PlacementConversion& one : solution.conversions) {
    if (!at_hand[at(one.value)].contains(one.from)) {
      return "a conversion reads " + in_layout(one.value, one.from) + ", which is not at hand";
    }
    if (!at_hand[at(one.value)].insert(one.to).second) {
      return "a conversion makes " + in_layout(one.value, one.to) + ", which is at hand";
    }
  }
  for (const int index : solution.placement.chosen) {
    for (const PlacementPort& port : problem.candidates[at(index)].inputs) {
      if (problem.is_constant[at(port.value)]) continue;
      if (at_hand[at(port.value)].contains(port.layout)) continue;
      return "candidate " + std::to_string(index) + " wants " + in_layout(port.value, port.layout) +
             ", which is not at hand";
    }
  }
  for (const int value : problem.results) {
    const int fed = fed_layout(problem, value);
    if (problem.is_constant[at(value)] || at_hand[at(value)].contains(fed)) continue;
    return "result " + in_layout(value, fed) + " is not at hand";
  }
  return "";
}

}  // namespace

std::string explain_violation(const PlacementProblem& problem, const PlacementSolution& solution) {
  const std::string wrong_order = explain_order(problem, solution.placement.chosen);
  if (!wrong_order.empty()) return wrong_order;
  const std::string wrong_layout = explain_layouts(problem, solution);
  if (!wrong_layout.empty()) return wrong_layout;
  double seconds = 0;
  double kept_bytes = 0;
  for (const int index : solution.placement.chosen) {
    seconds += problem.candidates[at(index)].seconds;
    kept_bytes += static_cast<double>(problem.candidates[at(index)].kept_bytes);
  }
  for (const PlacementConversion& one : solution.conversions) {
    seconds += conversion_price(problem, one.value, one.from, one.to);
  }
  if (kept_bytes > static_cast<double>(problem.kept_bytes_limit)) {
    return "more bytes are kept than is allowed";
  }
  if (!(std::abs(seconds - solution.seconds) <= 1e-9 * seconds)) {
    return "candidates and conversions take " + std::to_string(seconds) + " s, not " +
           std::to_string(solution.seconds) + " s";
  }
  if (solution.lower_bound > solution.seconds) return "the lower bound is above what was found";
  return "";
}

}  // namespace tessera
