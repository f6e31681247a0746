#include "plan/packing_grid.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// The size rounded up to the alignment.
int64_t stored_bytes(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Ensures that the sum of all sizes, in any packing, fits into 64 bits.
void check_sizes(std::span<const BufferRequest> requests, int64_t alignment) {
  int64_t room = std::numeric_limits<int64_t>::max();
  for (const BufferRequest& request : requests) {
    TESSERA_CHECK(request.bytes >= 0 && request.lower < request.upper,
                  "what a plan asks memory for has a size and a lifetime");
    if (room < alignment || request.bytes > room - alignment) {
      throw Error(ErrorKind::InvalidModel, "intermediate values",
                  "the sizes of its values together exceed 64 bits");
    }
    room -= request.bytes + alignment;
  }
}

// The requests that have bytes, in the order in which their lifetimes begin.
std::vector<size_t> placed_requests(std::span<const BufferRequest> requests) {
  std::vector<size_t> order;
  for (size_t index = 0; index < requests.size(); ++index) {
    if (requests[index].bytes > 0) order.push_back(index);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t left, size_t right) {
    return requests[left].lower < requests[right].lower;
  });
  return order;
}

void fill_part(GridPart& part, std::span<const BufferRequest> requests, int64_t alignment,
               int64_t unit_bytes) {
  std::vector<int64_t> times;
  for (const size_t index : part.requests) {
    times.push_back(requests[index].lower);
    times.push_back(requests[index].upper);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto section_of = [&](int64_t time) {
    return static_cast<int>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
  };
  std::vector<int64_t> changes(times.size(), 0);
  for (const size_t index : part.requests) {
    const BufferRequest& request = requests[index];
    const GridBuffer buffer{.first = section_of(request.lower),
                            .end = section_of(request.upper),
                            .units = stored_bytes(request.bytes, alignment) / unit_bytes};
    changes[static_cast<size_t>(buffer.first)] += buffer.units;
    changes[static_cast<size_t>(buffer.end)] -= buffer.units;
    part.buffers.push_back(buffer);
  }
  int64_t load = 0;
  for (const int64_t change : changes) {
    load += change;
    part.load = std::max(part.load, load);
  }
}

}  // namespace

PackingGrid make_grid(std::span<const BufferRequest> requests, int64_t alignment) {
  check_sizes(requests, alignment);
  PackingGrid grid{.unit_bytes = 0};
  int64_t end = std::numeric_limits<int64_t>::min();  // of the last part
  for (const size_t index : placed_requests(requests)) {
    const BufferRequest& request = requests[index];
    if (grid.parts.empty() || request.lower >= end) grid.parts.emplace_back();
    end = std::max(end, request.upper);
    grid.parts.back().requests.push_back(index);
    grid.unit_bytes = std::gcd(grid.unit_bytes, stored_bytes(request.bytes, alignment));
  }
  for (GridPart& part : grid.parts) fill_part(part, requests, alignment, grid.unit_bytes);
  return grid;
}

int64_t height_of(std::span<const GridBuffer> buffers, std::span<const int64_t> offsets) {
  int64_t height = 0;
  for (size_t index = 0; index < buffers.size(); ++index) {
    height = std::max(height, offsets[index] + buffers[index].units);
  }
  return height;
}

}  // namespace tessera
