#include <vector>

#include "place/placement.h"

namespace tessera {

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

}  // namespace tessera
