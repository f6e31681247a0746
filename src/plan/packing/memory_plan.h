// Finds the offsets of buffers in the arena.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tessera {

// A buffer that needs an offset. It is live during [lower, upper), in steps of a plan or any other
// unit of time.
struct BufferRequest {
  int64_t lower = 0;
  int64_t upper = 0;  // > lower
  int64_t bytes = 0;  // >= 0
};

struct PackingOptions {
  // Every offset is a multiple of it, and sizes are rounded up to a multiple.
  int64_t alignment = 1;
  // The search stops if the arena is at most this large.
  int64_t enough_bytes = 0;
  // The limit of the exact search, which runs if the quick packings may not be optimal: the number
  // of buffers to visit, at some nanoseconds each. 0: no search. Not a time limit, so that equal
  // requests get equal plans.
  int64_t search_effort = 4'000'000;
  // If not null: called every few milliseconds; true ends the search with the best plan so far.
  // Then equal requests may get different plans.
  std::function<bool()> is_over;
};

struct MemoryPlan {
  std::vector<int64_t> offsets;   // one for each request
  int64_t arena_bytes = 0;        // the end of the highest buffer, rounded up to the alignment
  int64_t lower_bound_bytes = 0;  // the maximum live at the same time, with sizes rounded up
  bool is_smallest = true;        // proven: equals the bound, or all smaller sizes are excluded
};

// Packs `requests` into one arena, the smallest that is found: first by the quick packings of
// first_fit.h, then by turns of exact searches (pack_part.h). Pure, except for `is_over`. Throws
// Error (InvalidModel) if the sum of the sizes exceeds 64 bits.
MemoryPlan plan_memory(const std::vector<BufferRequest>& requests,
                       const PackingOptions& options = {});

// Returns what is wrong with `plan`, or "" if it is sound. Sweeps over time with the live buffers
// sorted by offset. Shares no code with plan_memory(), so that neither can hide a mistake of the
// other.
std::string explain_violation(const std::vector<BufferRequest>& requests, const MemoryPlan& plan,
                              int64_t alignment = 1);

}  // namespace tessera
