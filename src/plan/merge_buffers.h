// Merges buffers, which makes packing problems smaller.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/packing_grid.h"

namespace tessera {

// A buffer that is part of a merged buffer.
struct MergedPart {
  size_t buffer = 0;
  int64_t offset = 0;  // from the beginning of the merged buffer
};

struct MergedBuffers {
  std::vector<GridBuffer> buffers;
  std::vector<std::vector<MergedPart>> parts;  // by index in `buffers`
  int64_t stacks_visited = 0;                  // how much work it was
};

struct MergeOptions {
  size_t max_joined = 10;  // the maximum number of buffers that are joined in one step
  // The share of the joins that are made; `seed` selects which.
  double share = 1;
  uint64_t seed = 0;
  bool stacks_equal_lifetimes = true;  // at the end, all that are left
};

// Merges buffers that probably fit together (a heuristic). Buffers of equal lifetime that are
// stacked on each other can be joined with a stack of the same total height that begins when they
// end: both then use the same offsets, one after the other. Joins the smallest stacks first, and
// repeats with the results until nothing fits together any more; finally, stacks all buffers of
// equal lifetime. So a rectangle that was cut into pieces recursively becomes whole again. Every
// packing of the merged buffers is a packing of `buffers`, but not the other way round. Pure.
MergedBuffers merge_buffers(std::span<const GridBuffer> buffers, const MergeOptions& options = {});

// Returns an offset for each of the `count` original buffers, given the offsets of the merged ones.
std::vector<int64_t> offsets_of_parts(const MergedBuffers& merged, std::span<const int64_t> offsets,
                                      size_t count);

}  // namespace tessera
