#include "place/cover.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "base/containers/at.h"

namespace tessera {

Cover::Cover(const PlacementProblem& problem)
    : problem_(problem),
      readers_(problem.nodes.size()),
      group_of_(problem.nodes.size(), kNoIndex),
      farthest_(problem.nodes.size() + 1, kNoIndex),
      mark_of_(problem.nodes.size(), 0) {
  std::vector<int> producer(at(problem.value_count), kNoIndex);
  for (size_t node = 0; node < problem.nodes.size(); ++node) {
    for (const int value : problem.nodes[node].outputs) {
      producer[at(value)] = static_cast<int>(node);
    }
  }
  for (size_t node = 0; node < problem.nodes.size(); ++node) {
    for (const int value : problem.nodes[node].inputs) {
      if (producer[at(value)] == kNoIndex) continue;
      readers_[at(producer[at(value)])].push_back(static_cast<int>(node));
    }
  }
}

bool Cover::can_accept(const std::vector<int>& nodes) const {
  const bool is_free =
      std::all_of(nodes.begin(), nodes.end(), [&](int node) { return !is_covered(node); });
  return is_free && (nodes.size() == 1 || !makes_cycle(nodes));
}

bool Cover::try_accept(const std::vector<int>& nodes) {
  if (!can_accept(nodes)) return false;
  for (const int node : nodes) group_of_[at(node)] = static_cast<int>(groups_.size());
  groups_.push_back(nodes);
  if (nodes.size() == 1) return true;
  for (size_t position = at(nodes.front()) + 1; position < farthest_.size();
       position += position & -position) {
    farthest_[position] = std::max(farthest_[position], nodes.back());
  }
  return true;
}

// Returns a node after which no path leads back to a node up to `last`: readers come after what
// they read, and no accepted group has nodes on both sides of the returned one.
int Cover::last_node_on_return_path(int last) const {
  for (;;) {
    int farthest = last;  // last node of the groups that begin at or before `last`
    for (size_t position = at(last) + 1; position > 0; position -= position & -position) {
      farthest = std::max(farthest, farthest_[position]);
    }
    if (farthest == last) return last;
    last = farthest;
  }
}

int Cover::first_uncovered() const {
  const auto found = std::find(group_of_.begin(), group_of_.end(), kNoIndex);
  return found == group_of_.end() ? kNoIndex : static_cast<int>(found - group_of_.begin());
}

bool Cover::makes_cycle(const std::vector<int>& nodes) const {
  const uint64_t inside = ++newest_mark_;
  for (const int node : nodes) mark_of_[at(node)] = inside;
  const uint64_t seen = ++newest_mark_;
  const int end = last_node_on_return_path(nodes.back());
  std::vector<int> stack;
  bool is_back = false;
  const auto visit = [&](int node) {
    if (node > end || mark_of_[at(node)] == seen) return;
    is_back = is_back || mark_of_[at(node)] == inside;
    mark_of_[at(node)] = seen;
    stack.push_back(node);
  };
  for (const int node : nodes) {
    for (const int reader : readers_[at(node)]) {
      if (mark_of_[at(reader)] != inside) visit(reader);
    }
  }
  while (!stack.empty() && !is_back) {
    const int node = stack.back();
    stack.pop_back();
    // Whatever depends on one node of an accepted group depends on all of it.
    if (is_covered(node)) {
      for (const int member : groups_[at(group_of_[at(node)])]) visit(member);
    }
    for (const int reader : readers_[at(node)]) visit(reader);
  }
  return is_back;
}

std::vector<int> Cover::order() const {
  std::vector<std::vector<int>> followers(groups_.size());
  std::vector<int> waits_for(groups_.size(), 0);
  for (size_t node = 0; node < problem_.nodes.size(); ++node) {
    for (const int reader : readers_[node]) {
      const int from = group_of_[node];
      const int to = group_of_[at(reader)];
      if (from == to) continue;
      followers[at(from)].push_back(to);
      ++waits_for[at(to)];
    }
  }
  using Ready = std::pair<int, int>;  // last node, group
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (size_t group = 0; group < groups_.size(); ++group) {
    if (waits_for[group] == 0) ready.emplace(groups_[group].back(), static_cast<int>(group));
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int group = ready.top().second;
    ready.pop();
    order.push_back(group);
    for (const int follower : followers[at(group)]) {
      if (--waits_for[at(follower)] == 0) ready.emplace(groups_[at(follower)].back(), follower);
    }
  }
  return order;
}

}  // namespace tessera
