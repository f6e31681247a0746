#include "plan/packing/packing_grid.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "base/errors/check.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// Requests may be nested deeply. Without a limit, removing the longest again and again would take
// quadratic time.
constexpr int kMaxDepth = 32;

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

// Requests that are not fixed yet, in the order in which their lifetimes begin.
struct Rest {
  std::vector<size_t> requests;
  int64_t units_below = 0;
  int depth = 0;  // how often fixed requests were removed
};

// Splits requests into those that are connected by overlaps.
std::vector<Rest> connected(Rest rest, std::span<const BufferRequest> requests) {
  std::vector<Rest> components;
  int64_t end = std::numeric_limits<int64_t>::min();  // of the last component
  for (const size_t index : rest.requests) {
    if (components.empty() || requests[index].lower >= end) {
      components.push_back({.units_below = rest.units_below, .depth = rest.depth});
    }
    end = std::max(end, requests[index].upper);
    components.back().requests.push_back(index);
  }
  return components;
}

// Removes the connected requests that are live as long as all together, and adds them to `grid`.
// Returns whether there were any.
bool fix_longest(Rest& rest, std::span<const BufferRequest> requests, int64_t alignment,
                 PackingGrid& grid) {
  const int64_t lower = requests[rest.requests.front()].lower;
  int64_t upper = lower;
  for (const size_t index : rest.requests) upper = std::max(upper, requests[index].upper);
  const size_t removed = std::erase_if(rest.requests, [&](size_t index) {
    const BufferRequest& request = requests[index];
    if (request.lower != lower || request.upper != upper) return false;
    grid.fixed.push_back({index, rest.units_below});
    rest.units_below += stored_bytes(request.bytes, alignment) / grid.unit_bytes;
    return true;
  });
  grid.fixed_height = std::max(grid.fixed_height, rest.units_below);
  ++rest.depth;
  return removed > 0;
}

}  // namespace

PackingGrid make_grid(std::span<const BufferRequest> requests, int64_t alignment) {
  check_sizes(requests, alignment);
  PackingGrid grid{.unit_bytes = 0};
  Rest all{.requests = placed_requests(requests)};
  for (const size_t index : all.requests) {
    grid.unit_bytes = std::gcd(grid.unit_bytes, stored_bytes(requests[index].bytes, alignment));
  }
  std::vector<Rest> rests = connected(std::move(all), requests);
  while (!rests.empty()) {
    Rest rest = std::move(rests.back());
    rests.pop_back();
    if (rest.depth < kMaxDepth && fix_longest(rest, requests, alignment, grid)) {
      std::ranges::move(connected(std::move(rest), requests), std::back_inserter(rests));
      continue;
    }
    GridPart part{.requests = std::move(rest.requests), .units_below = rest.units_below};
    fill_part(part, requests, alignment, grid.unit_bytes);
    grid.parts.push_back(std::move(part));
  }
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
