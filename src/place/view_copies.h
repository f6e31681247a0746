// What views and joint values cost after all: the copies for readers that take neither strides nor
// odd addresses, and for parts that cannot be written where they belong.
#pragma once

#include <vector>

#include "place/placement.h"

namespace tessera {

// Follows a choice in the order in which it runs.
class ViewCopies {
 public:
  explicit ViewCopies(const PlacementProblem& problem);

  // Seconds of the copies that `candidate` forces if it runs next. For a view these are copies that
  // readers will need whichever of their candidates is chosen.
  double seconds(const PlacementCandidate& candidate) const;

  void take(const PlacementCandidate& candidate);

 private:
  // Where a value lies: part of the memory of `owner`, itself for most.
  struct Memory {
    int owner = 0;
    int64_t offset_bytes = 0;
    int64_t bytes = 0;
    int layout = 0;
    bool has_strides = false;
    bool is_ours = false;  // not an input, a constant or a part of one
  };

  bool is_fit(const Memory& memory, const PlacementPort& port) const;
  bool some_reader_is_unfit(int value, const Memory& memory) const;
  Memory part_of(const PlacementCandidate& view, const PlacementPort& part) const;
  std::vector<bool> placed_inputs(const PlacementCandidate& joint) const;

  const PlacementProblem& problem_;
  std::vector<Memory> memory_;                // by value
  std::vector<int64_t> owner_bytes_;          // by owner
  std::vector<std::vector<int>> readers_;     // by value: nodes
  std::vector<std::vector<int>> candidates_;  // by node
};

}  // namespace tessera
