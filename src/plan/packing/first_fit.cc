#include "plan/packing/first_fit.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/containers/interval_index.h"

namespace tessera {
namespace {

constexpr size_t kMaxForAllOrders = 4000;
// The maximum number of pairs of buffers that are live at the same time. Visiting this many takes
// about a second.
constexpr size_t kMaxLivePairs = 20'000'000;

using Key = double (*)(const GridBuffer&);

double size_of(const GridBuffer& buffer) { return static_cast<double>(buffer.units); }
double length_of(const GridBuffer& buffer) { return buffer.end - buffer.first; }
double area_of(const GridBuffer& buffer) { return size_of(buffer) * length_of(buffer); }

// In descending order; buffers with equal keys keep their order.
std::vector<size_t> sorted_by(std::span<const GridBuffer> buffers, Key key) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t left, size_t right) {
    return key(buffers[left]) > key(buffers[right]);
  });
  return order;
}

// An index of the buffers by their lifetimes.
IntervalIndex index_of(std::span<const GridBuffer> buffers) {
  std::vector<std::pair<int64_t, int64_t>> times;
  times.reserve(buffers.size());
  for (const GridBuffer& buffer : buffers) times.emplace_back(buffer.first, buffer.end);
  return IntervalIndex(times);
}

// Returns an empty vector if more than kMaxMeetings pairs are live at the same time.
std::vector<int64_t> pack_in_order(std::span<const GridBuffer> buffers,
                                   const std::vector<size_t>& order) {
  std::vector<int64_t> offsets(buffers.size(), 0);
  IntervalIndex placed = index_of(buffers);
  size_t live_pairs = 0;
  std::vector<size_t> live;  // at the same time as `buffer`
  for (const size_t index : order) {
    const GridBuffer& buffer = buffers[index];
    live.clear();
    placed.find(buffer.first, buffer.end, live);
    live_pairs += live.size();
    if (live_pairs > kMaxLivePairs) return {};
    std::sort(live.begin(), live.end(),
              [&](size_t left, size_t right) { return offsets[left] < offsets[right]; });
    int64_t offset = 0;
    for (const size_t other : live) {
      if (offset + buffer.units <= offsets[other]) break;
      offset = std::max(offset, offsets[other] + buffers[other].units);
    }
    offsets[index] = offset;
    placed.insert(index);
  }
  return offsets;
}

// The free ranges below the top of the arena, by offset and by size.
class FreeRanges {
 public:
  // Takes from the smallest range that is large enough; if there is none, extends the top.
  int64_t take(int64_t units) {
    const auto found = by_size_.lower_bound({units, 0});
    if (found == by_size_.end()) return std::exchange(top_, top_ + units);
    const auto [size, offset] = *found;
    remove(offset, size);
    if (size > units) add(offset + units, size - units);
    return offset;
  }

  void release(int64_t offset, int64_t units) {
    const auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && next->first == offset + units) {
      const int64_t size = next->second;
      remove(offset + units, size);
      units += size;
    }
    const auto behind = by_offset_.lower_bound(offset);
    if (behind != by_offset_.begin()) {
      const auto [begin, size] = *std::prev(behind);
      if (begin + size == offset) {
        remove(begin, size);
        offset = begin;
        units += size;
      }
    }
    add(offset, units);
  }

 private:
  void add(int64_t offset, int64_t size) {
    by_offset_.emplace(offset, size);
    by_size_.emplace(size, offset);
  }
  void remove(int64_t offset, int64_t size) {
    by_offset_.erase(offset);
    by_size_.erase({size, offset});
  }

  std::map<int64_t, int64_t> by_offset_;
  std::set<std::pair<int64_t, int64_t>> by_size_;
  int64_t top_ = 0;
};

// Places buffers in the order in which their lifetimes begin, each by best fit: O(n log n).
std::vector<int64_t> pack_best_fit_by_start(std::span<const GridBuffer> buffers) {
  std::vector<size_t> begins(buffers.size());
  std::iota(begins.begin(), begins.end(), size_t{0});
  std::vector<size_t> ends = begins;
  std::ranges::stable_sort(begins, {}, [&](size_t index) { return buffers[index].first; });
  std::ranges::stable_sort(ends, {}, [&](size_t index) { return buffers[index].end; });
  std::vector<int64_t> offsets(buffers.size(), 0);
  FreeRanges room;
  auto over = ends.begin();
  for (const size_t index : begins) {
    for (; buffers[*over].end <= buffers[index].first; ++over) {
      room.release(offsets[*over], buffers[*over].units);
    }
    offsets[index] = room.take(buffers[index].units);
  }
  return offsets;
}

}  // namespace

std::vector<int64_t> pack_first_fit(std::span<const GridBuffer> buffers, int64_t enough) {
  std::vector<int64_t> best;
  for (const Key key : {Key{size_of}, Key{area_of}, Key{length_of}}) {
    std::vector<int64_t> offsets = pack_in_order(buffers, sorted_by(buffers, key));
    if (offsets.empty()) return best.empty() ? pack_best_fit_by_start(buffers) : best;
    if (best.empty() || height_of(buffers, offsets) < height_of(buffers, best)) {
      best = std::move(offsets);
    }
    if (height_of(buffers, best) <= enough || buffers.size() > kMaxForAllOrders) break;
  }
  return best;
}

}  // namespace tessera
