#include "place/cover.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace tessera {
namespace {

constexpr int kNone = -1;

size_t at(int index) { return static_cast<size_t>(index); }

}  // namespace

Cover::Cover(const PlacementProblem& problem)
    : problem_(problem), readers_(problem.nodes.size()), group_of_(problem.nodes.size(), kNone) {
  std::vector<int> producer(at(problem.value_count), kNone);
  for (size_t node = 0; node < problem.nodes.size(); ++node) {
    for (const int value : problem.nodes[node].outputs) {
      producer[at(value)] = static_cast<int>(node);
    }
  }
  for (size_t node = 0; node < problem.nodes.size(); ++node) {
    for (const int value : problem.nodes[node].inputs) {
      if (producer[at(value)] == kNone) continue;
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
  return true;
}

int Cover::first_uncovered() const {
  const auto found = std::find(group_of_.begin(), group_of_.end(), kNone);
  return found == group_of_.end() ? kNone : static_cast<int>(found - group_of_.begin());
}

bool Cover::makes_cycle(const std::vector<int>& nodes) const {
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
    for (const int reader : readers_[at(node)]) {
      if (!is_inside[at(reader)]) visit(reader);
    }
  }
  while (!stack.empty()) {
    const int node = stack.back();
    stack.pop_back();
    if (is_inside[at(node)]) return true;
    // Whatever depends on one node of an accepted group depends on all of it.
    if (is_covered(node)) {
      for (const int member : groups_[at(group_of_[at(node)])]) visit(member);
    }
    for (const int reader : readers_[at(node)]) visit(reader);
  }
  return false;
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
    if (waits_for[group] == 0) ready.push({groups_[group].back(), static_cast<int>(group)});
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int group = ready.top().second;
    ready.pop();
    order.push_back(group);
    for (const int follower : followers[at(group)]) {
      if (--waits_for[at(follower)] == 0) ready.push({groups_[at(follower)].back(), follower});
    }
  }
  return order;
}

}  // namespace tessera
