#include "plan/packing/memory_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <queue>
#include <set>
#include <utility>

#include "plan/packing/pack_part.h"
#include "plan/packing/packing_grid.h"

namespace tessera {
namespace {

// Lowers the highest part until the arena has `enough` units, is proven minimal, or the effort is
// spent. The arena is as high as its highest part, so no other part matters.
void search(std::vector<PartPacker>& packers, int64_t enough, const PackingOptions& options) {
  std::priority_queue<std::pair<int64_t, size_t>> by_height;
  for (size_t index = 0; index < packers.size(); ++index) {
    by_height.emplace(packers[index].height(), index);
  }
  int64_t effort = options.search_effort;
  const auto is_over = [&] { return effort <= 0 || (options.is_over && options.is_over()); };
  while (!by_height.empty()) {
    const size_t index = by_height.top().second;
    PartPacker& highest = packers[index];
    if (!highest.can_search()) return;
    const int64_t height = highest.height();
    while (highest.height() == height) {
      enough = std::max(enough, highest.least());
      if (height <= enough || is_over()) return;
      effort -= highest.take_turn(enough, {.effort = effort, .is_over = options.is_over});
    }
    by_height.pop();
    by_height.emplace(highest.height(), index);
  }
}

}  // namespace

MemoryPlan plan_memory(const std::vector<BufferRequest>& requests, const PackingOptions& options) {
  const PackingGrid grid = make_grid(requests, options.alignment);
  MemoryPlan plan;
  plan.offsets.assign(requests.size(), 0);
  int64_t load = grid.fixed_height;
  for (const GridPart& part : grid.parts) load = std::max(load, part.units_below + part.load);
  if (load == 0) return plan;
  const int64_t enough = std::max(load, options.enough_bytes / grid.unit_bytes);
  std::vector<PartPacker> packers;
  packers.reserve(grid.parts.size());
  for (const GridPart& part : grid.parts) packers.emplace_back(part, enough);
  search(packers, enough, options);
  for (const FixedRequest& fixed : grid.fixed) {
    plan.offsets[fixed.request] = fixed.offset * grid.unit_bytes;
  }
  int64_t height = grid.fixed_height;
  int64_t least = load;
  for (size_t index = 0; index < packers.size(); ++index) {
    const std::vector<size_t>& requests_of_part = grid.parts[index].requests;
    least = std::max(least, packers[index].least());
    height = std::max(height, packers[index].height());
    for (size_t buffer = 0; buffer < requests_of_part.size(); ++buffer) {
      plan.offsets[requests_of_part[buffer]] = packers[index].offset(buffer) * grid.unit_bytes;
    }
  }
  plan.arena_bytes = height * grid.unit_bytes;
  plan.lower_bound_bytes = load * grid.unit_bytes;
  plan.is_smallest = height <= least;
  return plan;
}

std::string explain_violation(const std::vector<BufferRequest>& requests, const MemoryPlan& plan,
                              int64_t alignment) {
  if (plan.offsets.size() != requests.size()) return "a request has no offset";
  std::vector<size_t> order;  // by the beginning of their lifetimes
  for (size_t one = 0; one < requests.size(); ++one) {
    const std::string name = "buffer " + std::to_string(one);
    const int64_t begin = plan.offsets[one];
    if (begin < 0 || begin + requests[one].bytes > plan.arena_bytes) {
      return name + " is not inside the arena";
    }
    if (begin % alignment != 0) return name + " is not aligned";
    if (requests[one].bytes > 0) order.push_back(one);
  }
  std::sort(order.begin(), order.end(), [&](size_t left, size_t right) {
    return std::pair(requests[left].lower, left) < std::pair(requests[right].lower, right);
  });
  // Live buffers do not overlap, so a new one can only overlap its two neighbours.
  std::map<int64_t, size_t> live;                 // by offset
  std::set<std::pair<int64_t, size_t>> by_upper;  // the same buffers
  const auto overlap = [&](size_t one, size_t other) {
    return plan.offsets[one] < plan.offsets[other] + requests[other].bytes &&
           plan.offsets[other] < plan.offsets[one] + requests[one].bytes;
  };
  for (const size_t one : order) {
    for (auto over = by_upper.begin();
         over != by_upper.end() && over->first <= requests[one].lower;) {
      live.erase(plan.offsets[over->second]);
      over = by_upper.erase(over);
    }
    const auto next = live.lower_bound(plan.offsets[one]);
    for (const auto neighbour : {next, next == live.begin() ? next : std::prev(next)}) {
      if (neighbour == live.end() || !overlap(one, neighbour->second)) continue;
      return "buffer " + std::to_string(std::max(one, neighbour->second)) + " overlaps buffer " +
             std::to_string(std::min(one, neighbour->second));
    }
    live.emplace(plan.offsets[one], one);
    by_upper.emplace(requests[one].upper, one);
  }
  return "";
}

}  // namespace tessera
