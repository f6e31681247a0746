// Loops whose bodies need memory of their own. The caller allocates one piece of memory per slot
// before the loop, so the amount does not depend on which threads take part.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/threads/parallel.h"

namespace tessera {

// The number of pieces of `grain` indices in [0, count); the last piece may be shorter.
inline int64_t piece_count(int64_t count, int64_t grain) { return (count + grain - 1) / grain; }

// The maximum number of pieces that are worked on at the same time.
inline int64_t slot_count(const ThreadPool& pool, int64_t count, int64_t grain) {
  return std::min<int64_t>(pool.threads(), piece_count(count, grain));
}

// Calls body(slot, begin, end) for each piece, in any order; no two calls run in the same slot in
// [0, slot_count()) at the same time. `grain` is at least 1. The first exception of a body ends the
// work of its slot and is rethrown.
template <class Body>
void parallel_for_in_slots(ThreadPool& pool, int64_t count, int64_t grain, const Body& body) {
  const int64_t pieces = piece_count(count, grain);
  std::atomic<int64_t> next = 0;
  pool.parallel_for(slot_count(pool, count, grain), 1, [&](int64_t first, int64_t last) {
    for (int64_t slot = first; slot < last; ++slot) {
      for (int64_t piece = next++; piece < pieces; piece = next++) {
        body(slot, piece * grain, std::min(count, (piece + 1) * grain));
      }
    }
  });
}

}  // namespace tessera
