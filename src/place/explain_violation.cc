// Replays a choice candidate by candidate and a solution conversion by conversion, and recomputes
// the sum of seconds.
#include "place/explain_violation.h"

#include <cmath>
#include <set>
#include <utility>

#include "base/containers/at.h"
#include "tessera/error.h"

namespace tessera {
namespace {

constexpr double kRounding = 1e-9;

std::string in_layout(int value, int layout) {
  return "value " + std::to_string(value) + " in layout " + std::to_string(layout);
}

// Says which needed value does not exist in its layout, or returns "".
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

[[noreturn]] void fail(const std::string& violation) {
  throw Error(ErrorKind::Internal, "the choice among candidates", "broke a rule: " + violation);
}

}  // namespace

std::string explain_violation(const PlacementProblem& problem, const Placement& placement) {
  std::vector<int> covered(problem.nodes.size(), 0);
  std::vector<bool> is_made_by_node(static_cast<size_t>(problem.value_count), false);
  for (const PlacementNode& node : problem.nodes) {
    for (const int value : node.outputs) is_made_by_node[static_cast<size_t>(value)] = true;
  }
  std::vector<bool> is_at_hand(static_cast<size_t>(problem.value_count), false);
  for (size_t value = 0; value < is_at_hand.size(); ++value) {
    is_at_hand[value] = !is_made_by_node[value];
  }
  for (const int index : placement.chosen) {
    if (index < 0 || static_cast<size_t>(index) >= problem.candidates.size()) {
      return "candidate " + std::to_string(index) + " is not there";
    }
    const auto position = static_cast<size_t>(index);
    const std::string name = "candidate " + std::to_string(index);
    if (!problem.is_forbidden.empty() && problem.is_forbidden[position]) {
      return name + " is forbidden";
    }
    const PlacementCandidate& candidate = problem.candidates[position];
    for (const PlacementPort& port : candidate.inputs) {
      if (!is_at_hand[static_cast<size_t>(port.value)]) {
        return name + " reads value " + std::to_string(port.value) + " before it is made";
      }
    }
    for (const int node : candidate.nodes) {
      if (covered[static_cast<size_t>(node)]++ > 0) {
        return "node " + std::to_string(node) + " is in two candidates";
      }
    }
    for (const PlacementPort& port : candidate.outputs) {
      is_at_hand[static_cast<size_t>(port.value)] = true;
    }
  }
  for (size_t node = 0; node < covered.size(); ++node) {
    if (covered[node] == 0) return "node " + std::to_string(node) + " is in no candidate";
  }
  return "";
}

std::string explain_violation(const PlacementProblem& problem, const PlacementSolution& solution) {
  std::string wrong_order = explain_violation(problem, solution.placement);
  if (!wrong_order.empty()) return wrong_order;
  std::string wrong_layout = explain_layouts(problem, solution);
  if (!wrong_layout.empty()) return wrong_layout;
  double seconds = 0;
  for (const int index : solution.placement.chosen) {
    if (problem.candidates[at(index)].workspace_bytes > problem.workspace_bytes_limit) {
      return "candidate " + std::to_string(index) + " needs more workspace than is allowed";
    }
    seconds += problem.candidates[at(index)].seconds;
  }
  for (const PlacementConversion& one : solution.conversions) {
    seconds += conversion_price(problem, one.value, one.from, one.to);
  }
  if (!std::isfinite(seconds)) return "there is no such conversion";
  if (!(std::abs(seconds - solution.seconds) <= kRounding * seconds)) {
    return "candidates and conversions take " + std::to_string(seconds) + " s, not " +
           std::to_string(solution.seconds) + " s";
  }
  // The bound was summed in another order, so it is compared with a tolerance.
  if (solution.lower_bound > solution.seconds * (1 + kRounding))
    return "the lower bound is above what was found";
  return "";
}

Placement checked(const PlacementProblem& problem, Placement placement) {
  const std::string violation = explain_violation(problem, placement);
  if (!violation.empty()) fail(violation);
  return placement;
}

PlacementSolution checked(const PlacementProblem& problem, PlacementSolution solution) {
  if (!solution.is_found()) return solution;
  const std::string violation = explain_violation(problem, solution);
  if (!violation.empty()) fail(violation);
  return solution;
}

}  // namespace tessera
