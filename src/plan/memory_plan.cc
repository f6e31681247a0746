#include "plan/memory_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "plan/first_fit.h"
#include "plan/merge_buffers.h"
#include "plan/packing_grid.h"
#include "plan/search_offsets.h"

namespace tessera {
namespace {

// The effort of the first try of a search, for each member of each section. It suffices to place
// all buffers once and then to try some alternatives. Later tries may take small multiples of it.
constexpr int64_t kTryEffort = 200;
// Larger problems are only packed quickly, because the search keeps a list of members for each
// section.
constexpr int64_t kMaxSectionMembers = 1'000'000;
// Packing the merged buffers may take one part in kShareOfMerged of the effort.
constexpr int64_t kShareOfMerged = 8;
constexpr size_t kMaxToMerge = 4000;

// The length of try `number`, counted from 1, as a multiple of the first try: 1, 1, 2, 1, 1, 2, 4,
// ..., as in "Optimal Speedup of Las Vegas Algorithms" (Luby, Sinclair, Zuckerman, 1993).
int64_t try_length(int64_t number) {
  int64_t power = 1;
  while (power * 2 - 1 < number) power *= 2;
  return power * 2 - 1 == number ? power : try_length(number - power + 1);
}

struct Packing {
  std::vector<int64_t> offsets;
  int64_t height = 0;
  int64_t least = 0;  // proven lower bound of the height
};

int64_t section_members(const std::vector<GridBuffer>& buffers) {
  int64_t members = 0;
  for (const GridBuffer& buffer : buffers) members += buffer.end - buffer.first;
  return members;
}

// The height to try next, in turns: the lowest that is not excluded, the middle between that and
// the best, and just below the best. So the gap is halved if the lower bound is weak, and closed
// step by step if it is strong.
int64_t next_height(const Packing& best, int64_t least, int64_t number) {
  switch (number % 3) {
    case 1:
      return least;
    case 2:
      return least + (best.height - 1 - least) / 2;
    default:
      return best.height - 1;
  }
}

// Lowers `best` until it has at most `enough` units, is proven minimal, or `effort` is spent.
// Subtracts the work done from `effort`.
void search_offsets(const std::vector<GridBuffer>& buffers, int64_t enough, int64_t& effort,
                    Packing& best) {
  if (best.height <= std::max(enough, best.least) || effort <= 0) return;
  const int64_t members = section_members(buffers);
  if (members > kMaxSectionMembers) return;
  OffsetSearch search(buffers);
  for (int64_t number = 1; effort > 0; ++number) {
    const int64_t least = std::max(enough, best.least);
    if (best.height <= least) return;
    const int64_t height = next_height(best, least, number);
    const int64_t limit = std::min(effort, kTryEffort * members * try_length(number));
    const SearchResult result = search.search(height, limit, static_cast<uint64_t>(number));
    effort -= std::max<int64_t>(search.effort_spent(), 1);
    if (result == SearchResult::Impossible) best.least = height + 1;
    if (result == SearchResult::Found) {
      best.offsets = search.offsets();
      best.height = height_of(buffers, best.offsets);
    }
  }
}

Packing pack_quickly(const std::vector<GridBuffer>& buffers, int64_t enough, int64_t least) {
  Packing packing{.offsets = pack_first_fit(buffers, enough), .least = least};
  packing.height = height_of(buffers, packing.offsets);
  return packing;
}

// Improves `best` by packing merged buffers. These have fewer possible packings, so if a height is
// impossible for them, nothing is proven for `part`.
void improve_merged(const GridPart& part, int64_t enough, int64_t& effort, Packing& best) {
  const int64_t least = std::max(enough, best.least);
  if (best.height <= least || part.buffers.size() > kMaxToMerge) return;
  const MergedBuffers merged = merge_buffers(part.buffers);
  if (merged.buffers.size() == part.buffers.size()) return;
  int64_t some_effort = effort / kShareOfMerged;
  effort -= some_effort;
  Packing found = pack_quickly(merged.buffers, enough, part.load);
  search_offsets(merged.buffers, enough, some_effort, found);
  effort += std::max<int64_t>(some_effort, 0);
  if (found.height >= best.height) return;
  best.height = found.height;
  best.offsets = offsets_of_parts(merged, found.offsets, part.buffers.size());
}

}  // namespace

MemoryPlan plan_memory(const std::vector<BufferRequest>& requests, const PackingOptions& options) {
  const PackingGrid grid = make_grid(requests, options.alignment);
  MemoryPlan plan;
  plan.offsets.assign(requests.size(), 0);
  if (grid.parts.empty()) return plan;
  int64_t load = 0;
  for (const GridPart& part : grid.parts) load = std::max(load, part.load);
  int64_t enough = std::max(load, options.enough_bytes / grid.unit_bytes);
  int64_t effort = options.search_effort;
  int64_t height = 0;
  int64_t least = load;
  for (const GridPart& part : grid.parts) {
    Packing best = pack_quickly(part.buffers, enough, part.load);
    if (effort > 0) improve_merged(part, enough, effort, best);
    search_offsets(part.buffers, enough, effort, best);
    // The arena is as high as its highest part, so no part needs to be lower than the lower bound
    // of another.
    enough = std::max(enough, best.least);
    least = std::max(least, best.least);
    height = std::max(height, best.height);
    for (size_t index = 0; index < part.requests.size(); ++index) {
      plan.offsets[part.requests[index]] = best.offsets[index] * grid.unit_bytes;
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
