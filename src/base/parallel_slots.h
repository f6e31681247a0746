// Loops whose bodies work in memory of their own: there is as much of it as there are slots, made
// before the loop begins, so that what is allocated does not depend on which threads come.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/parallel.h"

namespace tessera {

// The pieces of `grain` indices, the last one perhaps less, that [0, count) consists of.
inline int64_t piece_count(int64_t count, int64_t grain) { return (count + grain - 1) / grain; }

// How many of them are worked on at once at most.
inline int64_t slot_count(const ThreadPool& pool, int64_t count, int64_t grain) {
  return std::min<int64_t>(pool.threads(), piece_count(count, grain));
}

// Calls body(slot, begin, end) for each of these pieces, in any order; no two calls run at once in
// one slot of [0, slot_count()). `grain` is at least 1. The first exception of a body ends the
// loop's work in its slot and is thrown.
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
