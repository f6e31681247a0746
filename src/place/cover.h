// Groups of nodes that are computed together, accepted one by one, without cyclic dependencies
// between them. Used by every algorithm that chooses candidates.
#pragma once

#include <cstdint>
#include <vector>

#include "place/placement.h"

namespace tessera {

// A set of accepted groups that form no cycle. Not thread-safe, not even its const functions.
class Cover {
 public:
  // `problem` must outlive this.
  explicit Cover(const PlacementProblem& problem);

  // Accepts `nodes` (ascending) if none of them is covered and no path leaves the group and returns
  // to it, through nodes and previously accepted groups. Returns whether it accepted them.
  bool try_accept(const std::vector<int>& nodes);
  // Whether try_accept() would accept `nodes`.
  bool can_accept(const std::vector<int>& nodes) const;

  bool is_covered(int node) const { return group_of_[static_cast<size_t>(node)] != kNoIndex; }
  // kNoIndex if every node is covered.
  int first_uncovered() const;

  // The groups, by the order in which they were accepted.
  const std::vector<std::vector<int>>& groups() const { return groups_; }
  // Indices of groups() in an order in which they can run: of the groups that are ready, the one
  // whose last node comes first. Requires that all nodes are covered.
  std::vector<int> order() const;

 private:
  bool makes_cycle(const std::vector<int>& nodes) const;
  int last_node_on_return_path(int last) const;

  const PlacementProblem& problem_;
  std::vector<std::vector<int>> readers_;  // by node: the nodes that read its outputs
  std::vector<std::vector<int>> groups_;
  std::vector<int> group_of_;  // by node
  // A Fenwick tree over nodes, for prefix maxima: the greatest last node of all groups of several
  // nodes whose first node is at most a given one.
  std::vector<int> farthest_;
  // By node: the mark of the newest search that visited it.
  mutable std::vector<uint64_t> mark_of_;
  mutable uint64_t newest_mark_ = 0;
};

}  // namespace tessera
