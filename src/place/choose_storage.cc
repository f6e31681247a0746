#include <algorithm>
#include <limits>

#include "base/containers/at.h"
#include "place/placement.h"
#include "solver/cost_network.h"

namespace tessera {
namespace {

class StorageChooser {
 public:
  StorageChooser(const PlacementProblem& problem, bool keeps_sparse)
      : problem_(problem),
        keeps_sparse_(keeps_sparse),
        is_forbidden_(problem.is_forbidden),
        candidates_by_node_(problem.nodes.size()),
        layouts_(at(problem.value_count), 0) {
    is_forbidden_.resize(problem.candidates.size(), false);
    for (size_t index = 0; index < problem.candidates.size(); ++index) {
      for (const int node : problem.candidates[index].nodes) {
        candidates_by_node_[at(node)].push_back(static_cast<int>(index));
      }
    }
    // Values that no node produces start in the layout in which they are fed.
    std::vector<bool> is_made(layouts_.size(), false);
    for (const PlacementNode& node : problem.nodes) {
      for (const int value : node.outputs) is_made[at(value)] = true;
    }
    for (size_t value = 0; value < layouts_.size(); ++value) {
      if (!is_made[value] && value < problem.fed_layout.size()) {
        layouts_[value] = problem.fed_layout[value];
      }
    }
  }

  std::vector<bool> run() {
    for (size_t node = 0; node < candidates_by_node_.size(); ++node)
      choose_for_node(static_cast<int>(node));
    return std::move(is_forbidden_);
  }

 private:
  bool is_sparse(const PlacementCandidate& candidate) const {
    const auto has_sparse = [&](const PlacementPort& port) {
      return problem_.is_sparse[at(port.layout)];
    };
    return std::any_of(candidate.inputs.begin(), candidate.inputs.end(), has_sparse) ||
           std::any_of(candidate.outputs.begin(), candidate.outputs.end(), has_sparse);
  }

  double price(const PlacementCandidate& candidate) const {
    double sum = candidate.seconds;
    for (const PlacementPort& port : candidate.inputs) {
      if (problem_.is_constant[at(port.value)]) continue;
      const int present = layouts_[at(port.value)];
      sum += problem_.conversion_hops[at(present)][at(port.layout)] *
             problem_.conversion_seconds[at(port.value)];
    }
    return sum;
  }

  void choose_for_node(int node) {
    int best_sparse = kNoIndex;
    int best_dense = kNoIndex;
    double min_sparse = kForbidden;
    double min_dense = kForbidden;
    for (const int index : candidates_by_node_[at(node)]) {
      const PlacementCandidate& candidate = problem_.candidates[at(index)];
      if (is_forbidden_[at(index)] || candidate.nodes.size() > 1) continue;
      const bool is_sparse_candidate = is_sparse(candidate);
      const double seconds =
          !is_sparse_candidate && candidate.seconds == 0 ? kForbidden : price(candidate);
      int& best = is_sparse_candidate ? best_sparse : best_dense;
      double& least = is_sparse_candidate ? min_sparse : min_dense;
      if (best != kNoIndex && seconds >= least) continue;
      best = index;
      least = seconds;
    }
    if (best_sparse == kNoIndex) return take_dense(node);
    const bool wins = keeps_sparse_ || best_dense == kNoIndex || min_sparse <= min_dense;
    for (const int index : candidates_by_node_[at(node)]) {
      if (is_sparse(problem_.candidates[at(index)]) != wins) is_forbidden_[at(index)] = true;
    }
    if (!wins) return take_dense(node);
    // Only the cheapest sparse candidate remains, or preference would decide among them.
    for (const int index : candidates_by_node_[at(node)]) {
      if (index != best_sparse) is_forbidden_[at(index)] = true;
    }
    for (const PlacementPort& port : problem_.candidates[at(best_sparse)].outputs) {
      layouts_[at(port.value)] = port.layout;
    }
  }

  // Layout 0 stands for every dense layout: sparse candidates do not distinguish them.
  void take_dense(int node) {
    for (const int value : problem_.nodes[at(node)].outputs) layouts_[at(value)] = 0;
  }

  const PlacementProblem& problem_;
  bool keeps_sparse_;
  std::vector<bool> is_forbidden_;
  std::vector<std::vector<int>> candidates_by_node_;  // by node: candidates
  std::vector<int> layouts_;                          // by value: its layout
};

}  // namespace

std::vector<bool> choose_storage(const PlacementProblem& problem, bool keeps_sparse) {
  const bool has_sparse = std::find(problem.is_sparse.begin(), problem.is_sparse.end(), true) !=
                          problem.is_sparse.end();
  if (!has_sparse) return problem.is_forbidden;
  return StorageChooser(problem, keeps_sparse).run();
}

}  // namespace tessera
