// A set of intervals, found by what they overlap. An implicit tree over all intervals, sorted by
// their beginnings; each node stores the largest end of the present intervals below it (Cormen et
// al., Introduction to Algorithms, "Interval trees").
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

  void insert(size_t id) { set(id, intervals_[position_[id]].second); }
  void erase(size_t id) { set(id, kAbsent); }

  // Appends the present intervals that overlap [begin, end) to `found`, in order of their
  // beginnings. An empty interval counts if it lies inside. O((1 + found) log n).
  void find(int64_t begin, int64_t end, std::vector<size_t>& found) const;

 private:
  static constexpr int64_t kAbsent = INT64_MIN;

  void set(size_t id, int64_t end);
  void find_below(size_t node, size_t first, size_t count, size_t limit, int64_t begin,
                  std::vector<size_t>& found) const;

  std::vector<std::pair<int64_t, int64_t>> intervals_;  // sorted
  std::vector<size_t> ids_;                             // by position in sorted order
  std::vector<size_t> position_;                        // by id
  size_t leaves_ = 1;                                   // a power of two
  std::vector<int64_t> ends_;                           // by node; node 1 is the root
};

}  // namespace tessera
