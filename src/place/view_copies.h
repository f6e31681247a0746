// The cost of views and joint values: copies for readers that accept neither strides nor unaligned
// addresses, and copies of parts that cannot be written in place.
#pragma once

#include <vector>

#include "place/placement.h"

namespace tessera {

// Tracks the memory of values while candidates are chosen in the order in which they run. `problem`
// must outlive this.
class ViewCopies {
 public:
  explicit ViewCopies(const PlacementProblem& problem);

  // Seconds of the copies that `candidate` forces if it runs next. For a view, only copies count
  // that readers need with every one of their candidates.
  double seconds(const PlacementCandidate& candidate) const;

  void take(const PlacementCandidate& candidate);

 private:
  // The memory of a value: a part of the memory of `owner`. Most values own their memory.
  struct Memory {
    int owner = 0;
    int64_t offset_bytes = 0;
    int64_t bytes = 0;
    int layout = 0;
    bool has_strides = false;
    bool is_produced_by_plan = false;  // not an input or constant, or part of one
  };

  bool is_fit(const Memory& memory, const PlacementPort& port) const;
  bool forces_copy_for_some_reader(int value, const Memory& memory) const;
  Memory part_of(const PlacementCandidate& view, const PlacementPort& part) const;
  std::vector<bool> inputs_written_in_place(const PlacementCandidate& joint) const;

  const PlacementProblem& problem_;
  std::vector<Memory> memory_;                // by value
  std::vector<int64_t> owner_bytes_;          // by owner
  std::vector<std::vector<int>> readers_;     // by value: nodes
  std::vector<std::vector<int>> candidates_;  // by node
};

}  // namespace tessera
