#include "base/containers/interval_index.h"

#include <algorithm>
#include <numeric>

namespace tessera {

IntervalIndex::IntervalIndex(const std::vector<std::pair<int64_t, int64_t>>& intervals)
    : ids_(intervals.size()), position_(intervals.size()) {
  std::iota(ids_.begin(), ids_.end(), size_t{0});
  std::stable_sort(ids_.begin(), ids_.end(), [&](size_t left, size_t right) {
    return intervals[left].first < intervals[right].first;
  });
  intervals_.reserve(intervals.size());
  for (size_t position = 0; position < ids_.size(); ++position) {
    position_[ids_[position]] = position;
    intervals_.push_back(intervals[ids_[position]]);
  }
  while (leaves_ < intervals_.size()) leaves_ *= 2;
  ends_.assign(2 * leaves_, kAbsent);
}

void IntervalIndex::set(size_t id, int64_t end) {
  size_t node = leaves_ + position_[id];
  ends_[node] = end;
  for (node /= 2; node > 0; node /= 2) ends_[node] = std::max(ends_[2 * node], ends_[2 * node + 1]);
}

void IntervalIndex::find(int64_t begin, int64_t end, std::vector<size_t>& found) const {
  const auto end_position =
      std::lower_bound(intervals_.begin(), intervals_.end(), end,
                       [](const auto& interval, int64_t limit) { return interval.first < limit; });
  find_below(1, 0, leaves_, static_cast<size_t>(end_position - intervals_.begin()), begin, found);
}

// Searches the positions [first, first + count) below `node`. Only intervals at positions before
// `limit` begin early enough.
void IntervalIndex::find_below(size_t node, size_t first, size_t count, size_t limit, int64_t begin,
                               std::vector<size_t>& found) const {
  if (first >= limit || ends_[node] <= begin) return;
  if (count == 1) {
    found.push_back(ids_[first]);
    return;
  }
  find_below(2 * node, first, count / 2, limit, begin, found);
  find_below(2 * node + 1, first + count / 2, count / 2, limit, begin, found);
}

}  // namespace tessera
