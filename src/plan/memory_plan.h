// Where buffers lie in the arena.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

// One buffer to place. It is live during steps [first_step, last_step].
struct BufferRequest {
  int first_step = 0;
  int last_step = 0;   // inclusive
  int64_t bytes = 0;   // >= 0
  int64_t align = 64;  // a power of two
};

struct MemoryPlan {
  std::vector<int64_t> offsets;  // one for each request
  int64_t arena_bytes = 0;
};

// Packs `requests` into one arena: the largest first, each at the lowest offset where it overlaps
// nothing that lives at the same time. Pure. Throws Error (InvalidModel) where offsets exceed 64
// bits.
MemoryPlan plan_memory(const std::vector<BufferRequest>& requests);

// Says what is wrong with `plan`, or "" when it is sound. Shares no code with plan_memory() and is
// O(n^2) on purpose, so that neither can hide the other's mistake.
std::string explain_violation(const std::vector<BufferRequest>& requests, const MemoryPlan& plan);

}  // namespace tessera
