// Intervals of which some are present, found by what they overlap: an implicit tree over all of
// them, sorted by where they begin, that has the largest end of what is present below each node
// (Cormen et al., Introduction to Algorithms, "Interval trees").
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tessera {

class IntervalIndex {
 public:
  // Interval `id` is [begin, end) of `intervals[id]`. None is present at first.
  explicit IntervalIndex(const std::vector<std::pair<int64_t, int64_t>>& intervals);

  void insert(size_t id) { set(id, intervals_[place_[id]].second); }
  void erase(size_t id) { set(id, kAbsent); }

  // Appends those that are present and reach into [begin, end) to `found`, in order of their
  // beginnings. Empty intervals count where they lie inside. O((1 + found) log n).
  void find(int64_t begin, int64_t end, std::vector<size_t>& found) const;

 private:
  static constexpr int64_t kAbsent = INT64_MIN;

  void set(size_t id, int64_t end);
  void find_below(size_t node, size_t first, size_t count, size_t most, int64_t begin,
                  std::vector<size_t>& found) const;

  std::vector<std::pair<int64_t, int64_t>> intervals_;  // sorted
  std::vector<size_t> ids_;                             // by place among the sorted
  std::vector<size_t> place_;                           // by id
  size_t leaves_ = 1;                                   // a power of two
  std::vector<int64_t> ends_;                           // by node; node 1 is the root
};

}  // namespace tessera
