#include "place/cheapest_parts.h"

#include <algorithm>
#include <map>
#include <utility>

#include "place/solve_placement.h"

namespace tessera {
namespace {

constexpr int kMaxNetworks = 50;
constexpr double kMaxWorkCells = 1e7;

// The part of a problem that concerns one group: its nodes, in one layout.
class PartsProblem {
 public:
  PartsProblem(const PlacementProblem& whole, const std::vector<int>& group) {
    part_.layout_count = 1;
    for (const int node : group) {
      node_of_.emplace(node, static_cast<int>(part_.nodes.size()));
      const PlacementNode& given = whole.nodes[static_cast<size_t>(node)];
      PlacementNode& made = part_.nodes.emplace_back();
      for (const int value : given.inputs) made.inputs.push_back(part_value(value));
      for (const int value : given.outputs) made.outputs.push_back(part_value(value));
    }
  }

  // Adds the candidate unless it computes other nodes, or all of the group.
  void add(const PlacementCandidate& given) {
    PlacementCandidate made{.seconds = given.seconds};
    for (const int node : given.nodes) {
      const auto found = node_of_.find(node);
      if (found == node_of_.end()) return;
      made.nodes.push_back(found->second);
    }
    if (made.nodes.size() == part_.nodes.size()) return;
    for (const PlacementPort& port : given.inputs) {
      made.inputs.push_back({.value = part_value(port.value)});
    }
    for (const PlacementPort& port : given.outputs) {
      made.outputs.push_back({.value = part_value(port.value)});
    }
    part_.candidates.push_back(std::move(made));
  }

  std::optional<double> least_seconds() {
    if (!covers_all()) return std::nullopt;
    part_.value_count = static_cast<int>(value_of_.size());
    part_.is_constant.assign(value_of_.size(), false);
    part_.conversion_prices.assign(value_of_.size(), {0});
    const PlacementSolution solution = solve_placement(
        part_, {.network = {.work_cells = kMaxWorkCells}, .networks = kMaxNetworks});
    return solution.is_found() ? std::optional(solution.seconds) : std::nullopt;
  }

 private:
  int part_value(int value) {
    return value_of_.emplace(value, static_cast<int>(value_of_.size())).first->second;
  }

  bool covers_all() const {
    std::vector<bool> is_covered(part_.nodes.size(), false);
    for (const PlacementCandidate& candidate : part_.candidates) {
      for (const int node : candidate.nodes) is_covered[static_cast<size_t>(node)] = true;
    }
    return std::ranges::all_of(is_covered, [](bool covered) { return covered; });
  }

  PlacementProblem part_;
  // Index in the part, by index in the whole problem.
  std::map<int, int> node_of_;
  std::map<int, int> value_of_;
};

}  // namespace

std::optional<double> cheapest_parts_seconds(const PlacementProblem& problem,
                                             const std::vector<int>& group,
                                             const std::vector<bool>& is_known) {
  PartsProblem parts(problem, group);
  for (size_t index = 0; index < problem.candidates.size(); ++index) {
    if (is_known[index]) parts.add(problem.candidates[index]);
  }
  return parts.least_seconds();
}

}  // namespace tessera
