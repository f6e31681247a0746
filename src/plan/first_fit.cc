#include "plan/first_fit.h"

#include <algorithm>
#include <numeric>

namespace tessera {
namespace {

constexpr size_t kMostForAllOrders = 4000;

using Key = double (*)(const GridBuffer&);

double size_of(const GridBuffer& buffer) { return static_cast<double>(buffer.units); }
double length_of(const GridBuffer& buffer) { return buffer.end - buffer.first; }
double area_of(const GridBuffer& buffer) { return size_of(buffer) * length_of(buffer); }

// Descending, buffers with equal keys as they came.
std::vector<size_t> sorted_by(std::span<const GridBuffer> buffers, Key key) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t left, size_t right) {
    return key(buffers[left]) > key(buffers[right]);
  });
  return order;
}

std::vector<int64_t> pack_in_order(std::span<const GridBuffer> buffers,
                                   const std::vector<size_t>& order) {
  std::vector<int64_t> offsets(buffers.size(), 0);
  std::vector<size_t> placed;  // by offset
  for (const size_t index : order) {
    const GridBuffer& buffer = buffers[index];
    int64_t offset = 0;
    for (const size_t other : placed) {
      if (buffers[other].first >= buffer.end || buffer.first >= buffers[other].end) continue;
      if (offset + buffer.units <= offsets[other]) break;
      offset = std::max(offset, offsets[other] + buffers[other].units);
    }
    offsets[index] = offset;
    const auto place =
        std::upper_bound(placed.begin(), placed.end(), offset,
                         [&](int64_t value, size_t other) { return value < offsets[other]; });
    placed.insert(place, index);
  }
  return offsets;
}

}  // namespace

std::vector<int64_t> pack_first_fit(std::span<const GridBuffer> buffers, int64_t enough) {
  std::vector<int64_t> best;
  for (const Key key : {Key{size_of}, Key{area_of}, Key{length_of}}) {
    std::vector<int64_t> offsets = pack_in_order(buffers, sorted_by(buffers, key));
    if (best.empty() || height_of(buffers, offsets) < height_of(buffers, best)) {
      best = std::move(offsets);
    }
    if (height_of(buffers, best) <= enough || buffers.size() > kMostForAllOrders) break;
  }
  return best;
}

}  // namespace tessera
