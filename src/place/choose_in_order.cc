#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/containers/at.h"
#include "place/cover.h"
#include "place/explain_violation.h"
#include "place/placement.h"
#include "place/view_copies.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// All candidates that have the same preference and the same nodes.
struct OrderedGroup {
  std::vector<int> nodes;
  int preference = 0;
  bool is_one_pass = false;     // it has several nodes, and all its candidates are one-pass
  std::vector<int> candidates;  // ascending
};

bool is_allowed(const PlacementProblem& problem, size_t candidate) {
  return problem.is_forbidden.empty() || !problem.is_forbidden[candidate];
}

bool is_one_pass(const PlacementCandidate& candidate) {
  return candidate.is_one_pass && candidate.nodes.size() > 1;
}

// Groups by preference, then larger groups first, then by nodes.
std::vector<OrderedGroup> collect_ordered_groups(const PlacementProblem& problem) {
  std::vector<int> order;
  for (size_t index = 0; index < problem.candidates.size(); ++index) {
    if (is_allowed(problem, index)) order.push_back(static_cast<int>(index));
  }
  const auto rank = [&](int index) {
    const PlacementCandidate& candidate = problem.candidates[at(index)];
    return std::tuple(candidate.preference, -static_cast<int64_t>(candidate.nodes.size()),
                      !is_one_pass(candidate));
  };
  std::stable_sort(order.begin(), order.end(), [&](int left, int right) {
    if (rank(left) != rank(right)) return rank(left) < rank(right);
    return problem.candidates[at(left)].nodes < problem.candidates[at(right)].nodes;
  });
  std::vector<OrderedGroup> groups;
  for (const int index : order) {
    const PlacementCandidate& candidate = problem.candidates[at(index)];
    const bool is_new = groups.empty() || groups.back().nodes != candidate.nodes ||
                        groups.back().preference != candidate.preference ||
                        groups.back().is_one_pass != is_one_pass(candidate);
    if (is_new) {
      groups.push_back({candidate.nodes, candidate.preference, is_one_pass(candidate), {}});
    }
    groups.back().candidates.push_back(index);
  }
  return groups;
}

// Moves one-pass groups behind the groups that they cannot replace, and before all others: those
// compute one node or a few, and write values that other groups then read again. Among one-pass
// groups, the largest come first.
void order_by_passes(std::vector<OrderedGroup>& groups, size_t node_count) {
  std::vector<bool> is_fusible(node_count, false);
  for (const OrderedGroup& group : groups) {
    if (!group.is_one_pass) continue;
    for (const int node : group.nodes) is_fusible[at(node)] = true;
  }
  const auto rank = [&](const OrderedGroup& group) {
    if (group.is_one_pass) return 1;
    const bool is_replaceable =
        std::ranges::all_of(group.nodes, [&](int node) { return is_fusible[at(node)]; });
    return is_replaceable ? 2 : 0;
  };
  std::ranges::stable_sort(groups, [&](const OrderedGroup& left, const OrderedGroup& right) {
    if (rank(left) != rank(right)) return rank(left) < rank(right);
    return left.is_one_pass && right.is_one_pass && left.nodes.size() > right.nodes.size();
  });
}

class PreferencePlacer {
 public:
  explicit PreferencePlacer(const PlacementProblem& problem)
      : problem_(problem), cover_(problem), copies_(problem) {}

  void accept_groups(std::vector<OrderedGroup> groups) {
    for (OrderedGroup& group : groups) {
      if (cover_.try_accept(group.nodes)) accepted_.push_back(std::move(group));
    }
  }

  int first_uncovered() const { return cover_.first_uncovered(); }

  Placement choose() {
    Placement placement;
    layouts_.assign(at(problem_.value_count), {0});
    for (size_t value = 0; value < problem_.fed_layout.size(); ++value) {
      layouts_[value] = {problem_.fed_layout[value]};
    }
    for (const int group : cover_.order()) {
      const int best = cheapest(accepted_[at(group)]);
      placement.chosen.push_back(best);
      take(problem_.candidates[at(best)]);
    }
    return placement;
  }

 private:
  double price_of(const PlacementPort& port) const {
    if (problem_.is_constant[at(port.value)]) return 0;
    double least = std::numeric_limits<double>::infinity();
    for (const int layout : layouts_[at(port.value)]) {
      least = std::min(least, conversion_price(problem_, port.value, layout, port.layout));
    }
    return least;
  }

  int cheapest(const OrderedGroup& group) const {
    int best = kNoIndex;
    double least = std::numeric_limits<double>::infinity();
    for (const int index : group.candidates) {
      const PlacementCandidate& candidate = problem_.candidates[at(index)];
      const double price = std::accumulate(
          candidate.inputs.begin(), candidate.inputs.end(),
          candidate.seconds + copies_.seconds(candidate),
          [&](double sum, const PlacementPort& port) { return sum + price_of(port); });
      if (best != kNoIndex && price >= least) continue;
      best = index;
      least = price;
    }
    return best;
  }

  void take(const PlacementCandidate& candidate) {
    copies_.take(candidate);
    for (const PlacementPort& port : candidate.inputs) {
      std::vector<int>& present = layouts_[at(port.value)];
      if (std::find(present.begin(), present.end(), port.layout) == present.end()) {
        present.push_back(port.layout);
      }
    }
    for (const PlacementPort& port : candidate.outputs) layouts_[at(port.value)] = {port.layout};
  }

  const PlacementProblem& problem_;
  Cover cover_;
  ViewCopies copies_;
  std::vector<OrderedGroup> accepted_;     // by group of the cover
  std::vector<std::vector<int>> layouts_;  // by value: layouts in which it exists
};

}  // namespace

Placement choose_in_order(const PlacementProblem& problem,
                          const std::vector<std::string>& node_names) {
  PreferencePlacer placer(problem);
  std::vector<OrderedGroup> groups = collect_ordered_groups(problem);
  order_by_passes(groups, problem.nodes.size());
  placer.accept_groups(std::move(groups));
  const int uncovered = placer.first_uncovered();
  if (uncovered != kNoIndex) {
    throw Uncovered(uncovered, node_names[at(uncovered)]);
  }
  return checked(problem, placer.choose());
}

}  // namespace tessera
