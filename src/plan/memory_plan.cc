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

// Where the first try of a search ends, by the members of all sections: time to try some ways after
// all buffers were placed once. Later tries may take small multiples of it.
constexpr int64_t kTryEffort = 200;
// Larger problems are left to the quick arrangements: the search keeps a list for each section.
constexpr int64_t kMaxSectionMembers = 1'000'000;
// Of the effort, what goes into fewer buffers that were made of the given ones.
constexpr int64_t kShareOfMerged = 8;
constexpr size_t kMaxToMerge = 4000;

// 1, 1, 2, 1, 1, 2, 4, ...: how much longer than the first the try `number` from 1 on takes, as in
// "Optimal Speedup of Las Vegas Algorithms" (Luby, Sinclair, Zuckerman, 1993).
int64_t try_length(int64_t number) {
  int64_t power = 1;
  while (power * 2 - 1 < number) power *= 2;
  return power * 2 - 1 == number ? power : try_length(number - power + 1);
}

struct Packing {
  std::vector<int64_t> offsets;
  int64_t height = 0;
  int64_t least = 0;  // no arrangement has less
};

int64_t section_members(const std::vector<GridBuffer>& buffers) {
  int64_t members = 0;
  for (const GridBuffer& buffer : buffers) members += buffer.end - buffer.first;
  return members;
}

// The height to try next: the least that is not excluded, between it and the best, just below the
// best, in turns. So a gap is halved where little is proven, and closed where much is.
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

// Lowers `best` to `enough` units, or the least there is, or until `effort` is spent, which it
// lessens.
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

// The same for buffers that were merged, which have fewer arrangements: what is impossible for them
// proves nothing.
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
    // No part needs to be lower than another one can be.
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
  std::vector<size_t> order;  // by when they begin
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
  // What is live lies apart, so that only the two neighbours of a new one can reach into it.
  std::map<int64_t, size_t> live;                 // by offset
  std::set<std::pair<int64_t, size_t>> by_upper;  // the same
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
