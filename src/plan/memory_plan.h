// Where buffers lie in the arena.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

// One buffer to place. It is live during [lower, upper): of a plan's steps, or of any other time.
struct BufferRequest {
  int64_t lower = 0;
  int64_t upper = 0;  // > lower
  int64_t bytes = 0;  // >= 0
};

struct PackingOptions {
  // Offsets are multiples of it, and sizes are rounded up to one.
  int64_t alignment = 1;
  // An arrangement no larger than this is not improved.
  int64_t enough_bytes = 0;
  // How long to search where quick arrangements may not be the smallest: buffers to look at, some
  // nanoseconds each; 0: not at all. No clock, so that equal requests get equal plans.
  int64_t search_effort = 4'000'000;
};

struct MemoryPlan {
  std::vector<int64_t> offsets;   // one for each request
  int64_t arena_bytes = 0;        // the end of the last buffer, rounded up to the alignment
  int64_t lower_bound_bytes = 0;  // what is live at once, at most, so rounded
  bool is_smallest = true;        // no arrangement is smaller: it equals the bound, or is proven
};

// Packs `requests` into one arena, the smallest that is found: by the quick arrangements of
// first_fit.h, then by the exact search of search_offsets.h. Pure. Throws Error (InvalidModel)
// where sizes together exceed 64 bits.
MemoryPlan plan_memory(const std::vector<BufferRequest>& requests,
                       const PackingOptions& options = {});

// Says what is wrong with `plan`, or "" when it is sound: goes through time with what is live by
// offset. Shares no code with plan_memory(), so that neither can hide the other's mistake.
std::string explain_violation(const std::vector<BufferRequest>& requests, const MemoryPlan& plan,
                              int64_t alignment = 1);

}  // namespace tessera
