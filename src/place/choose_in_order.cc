#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>

#include "place/placement.h"
#include "place/view_copies.h"
#include "tessera/error.h"

namespace tessera {
namespace {

constexpr int kNone = -1;

// All candidates of one preference over one set of nodes.
struct Group {
  std::vector<int> nodes;
  int preference = 0;
  std::vector<int> candidates;  // ascending
};

size_t at(int index) { return static_cast<size_t>(index); }

bool is_allowed(const PlacementProblem& problem, size_t candidate) {
  return problem.is_forbidden.empty() || !problem.is_forbidden[candidate];
}

// Groups in the order in which they are tried: by preference, larger ones first, then by place.
std::vector<Group> collect_groups(const PlacementProblem& problem) {
  std::vector<int> order;
  for (size_t index = 0; index < problem.candidates.size(); ++index) {
    if (is_allowed(problem, index)) order.push_back(static_cast<int>(index));
  }
  const auto rank = [&](int index) {
    const PlacementCandidate& candidate = problem.candidates[at(index)];
    return std::tuple(candidate.preference, -static_cast<int64_t>(candidate.nodes.size()));
  };
  std::stable_sort(order.begin(), order.end(), [&](int left, int right) {
    if (rank(left) != rank(right)) return rank(left) < rank(right);
    return problem.candidates[at(left)].nodes < problem.candidates[at(right)].nodes;
  });
  std::vector<Group> groups;
  for (const int index : order) {
    const PlacementCandidate& candidate = problem.candidates[at(index)];
    const bool is_new = groups.empty() || groups.back().nodes != candidate.nodes ||
                        groups.back().preference != candidate.preference;
    if (is_new) groups.push_back({candidate.nodes, candidate.preference, {}});
    groups.back().candidates.push_back(index);
  }
  return groups;
}

// Which node makes each value, and which nodes each node feeds.
struct Edges {
  explicit Edges(const PlacementProblem& problem)
      : producer(at(problem.value_count), kNone), readers(problem.nodes.size()) {
    for (size_t node = 0; node < problem.nodes.size(); ++node) {
      for (const int value : problem.nodes[node].outputs) {
        producer[at(value)] = static_cast<int>(node);
      }
    }
    for (size_t node = 0; node < problem.nodes.size(); ++node) {
      for (const int value : problem.nodes[node].inputs) {
        if (producer[at(value)] != kNone) {
          readers[at(producer[at(value)])].push_back(static_cast<int>(node));
        }
      }
    }
  }
  std::vector<int> producer;
  std::vector<std::vector<int>> readers;
};

class Chooser {
 public:
  explicit Chooser(const PlacementProblem& problem)
      : problem_(problem),
        edges_(problem),
        copies_(problem),
        group_of_(problem.nodes.size(), kNone) {}

  void accept_groups(std::vector<Group> groups) {
    groups_ = std::move(groups);
    for (size_t index = 0; index < groups_.size(); ++index) {
      const std::vector<int>& nodes = groups_[index].nodes;
      const bool is_free = std::all_of(nodes.begin(), nodes.end(),
                                       [&](int node) { return group_of_[at(node)] == kNone; });
      if (!is_free || (nodes.size() > 1 && makes_cycle(nodes))) continue;
      for (const int node : nodes) group_of_[at(node)] = static_cast<int>(index);
      accepted_.push_back(static_cast<int>(index));
    }
  }

  int first_uncovered() const {
    const auto found = std::find(group_of_.begin(), group_of_.end(), kNone);
    return found == group_of_.end() ? kNone : static_cast<int>(found - group_of_.begin());
  }

  Placement choose() {
    Placement placement;
    layouts_.assign(at(problem_.value_count), {0});
    for (size_t value = 0; value < problem_.fed_layout.size(); ++value) {
      layouts_[value] = {problem_.fed_layout[value]};
    }
    for (const int group : order_groups()) {
      const int best = cheapest(groups_[at(group)]);
      placement.chosen.push_back(best);
      take(problem_.candidates[at(best)]);
    }
    return placement;
  }

 private:
  // Whether a path leaves `nodes` and comes back, through nodes and groups accepted before.
  bool makes_cycle(const std::vector<int>& nodes) const {
    std::vector<bool> is_inside(problem_.nodes.size(), false);
    for (const int node : nodes) is_inside[at(node)] = true;
    std::vector<bool> is_seen(problem_.nodes.size(), false);
    std::vector<int> stack;
    const auto visit = [&](int node) {
      if (is_seen[at(node)]) return;
      is_seen[at(node)] = true;
      stack.push_back(node);
    };
    for (const int node : nodes) {
      for (const int reader : edges_.readers[at(node)]) {
        if (!is_inside[at(reader)]) visit(reader);
      }
    }
    while (!stack.empty()) {
      const int node = stack.back();
      stack.pop_back();
      if (is_inside[at(node)]) return true;
      // Whatever depends on one node of an accepted group depends on all of it.
      if (group_of_[at(node)] != kNone) {
        for (const int member : groups_[at(group_of_[at(node)])].nodes) visit(member);
      }
      for (const int reader : edges_.readers[at(node)]) visit(reader);
    }
    return false;
  }

  // Accepted groups in an order in which they can run; of those that can, the one whose last node
  // comes first.
  std::vector<int> order_groups() const {
    std::vector<std::vector<int>> followers(groups_.size());
    std::vector<int> waits_for(groups_.size(), 0);
    for (size_t node = 0; node < problem_.nodes.size(); ++node) {
      for (const int reader : edges_.readers[node]) {
        const int from = group_of_[node];
        const int to = group_of_[at(reader)];
        if (from == to) continue;
        followers[at(from)].push_back(to);
        ++waits_for[at(to)];
      }
    }
    using Ready = std::pair<int, int>;  // last node, group
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    for (const int group : accepted_) {
      if (waits_for[at(group)] == 0) ready.push({groups_[at(group)].nodes.back(), group});
    }
    std::vector<int> order;
    while (!ready.empty()) {
      const int group = ready.top().second;
      ready.pop();
      order.push_back(group);
      for (const int follower : followers[at(group)]) {
        if (--waits_for[at(follower)] == 0) {
          ready.push({groups_[at(follower)].nodes.back(), follower});
        }
      }
    }
    return order;
  }

  double conversion_price(const PlacementPort& port) const {
    if (problem_.is_constant[at(port.value)]) return 0;
    double least = std::numeric_limits<double>::infinity();
    for (const int layout : layouts_[at(port.value)]) {
      least = std::min(least, problem_.conversion_hops[at(layout)][at(port.layout)]);
    }
    return least * problem_.conversion_seconds[at(port.value)];
  }

  int cheapest(const Group& group) const {
    int best = kNone;
    double least = std::numeric_limits<double>::infinity();
    for (const int index : group.candidates) {
      const PlacementCandidate& candidate = problem_.candidates[at(index)];
      const double price = std::accumulate(
          candidate.inputs.begin(), candidate.inputs.end(),
          candidate.seconds + copies_.seconds(candidate),
          [&](double sum, const PlacementPort& port) { return sum + conversion_price(port); });
      if (best != kNone && price >= least) continue;
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
  Edges edges_;
  ViewCopies copies_;
  std::vector<Group> groups_;
  std::vector<int> group_of_;              // by node
  std::vector<int> accepted_;              // groups
  std::vector<std::vector<int>> layouts_;  // by value: in which it is at hand
};

}  // namespace

Placement choose_in_order(const PlacementProblem& problem,
                          const std::vector<std::string>& node_names) {
  Chooser chooser(problem);
  chooser.accept_groups(collect_groups(problem));
  const int uncovered = chooser.first_uncovered();
  if (uncovered != kNone) {
    throw Error(ErrorKind::Unsupported, node_names[at(uncovered)],
                "no backend can compute this node");
  }
  return chooser.choose();
}

}  // namespace tessera
