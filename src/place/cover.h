// Which nodes are taken together: groups that are accepted one by one and never wait for each
// other. Used by all that choose.
#pragma once

#include <cstdint>
#include <vector>

#include "place/placement.h"

namespace tessera {

// Groups of nodes, accepted as long as they stay free of cycles. For one thread at a time.
class Cover {
 public:
  // `problem` must outlive it.
  explicit Cover(const PlacementProblem& problem);

  // Accepts `nodes` (ascending) where all of them are free and no path leaves the group and comes
  // back, through nodes and groups accepted before. Gives whether it did.
  bool try_accept(const std::vector<int>& nodes);
  // Whether try_accept() would.
  bool can_accept(const std::vector<int>& nodes) const;

  bool is_covered(int node) const { return group_of_[static_cast<size_t>(node)] >= 0; }
  // -1 where there is none.
  int first_uncovered() const;

  // The groups, by the order in which they were accepted.
  const std::vector<std::vector<int>>& groups() const { return groups_; }
  // Indices of groups() in an order in which they can run: of those that can, the one whose last
  // node comes first. Once all nodes are covered.
  std::vector<int> order() const;

 private:
  bool makes_cycle(const std::vector<int>& nodes) const;
  int no_way_back_from(int last) const;

  const PlacementProblem& problem_;
  std::vector<std::vector<int>> readers_;  // by node: which nodes it feeds
  std::vector<std::vector<int>> groups_;
  std::vector<int> group_of_;  // by node
  // A Fenwick tree over nodes: of the groups of several nodes that begin up to one, the last node
  // of any.
  std::vector<int> farthest_;
  // What the newest search has met, by node.
  mutable std::vector<uint64_t> mark_of_;
  mutable uint64_t newest_mark_ = 0;
};

}  // namespace tessera
