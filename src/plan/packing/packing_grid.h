// The packing problem of memory_plan.h without units of measure: times become sections, and bytes
// become multiples of a unit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/packing/memory_plan.h"

namespace tessera {

// A buffer that is live in the sections [first, end). A section is the time between two adjacent
// beginnings or ends of lifetimes.
struct GridBuffer {
  int first = 0;
  int end = 0;        // > first
  int64_t units = 0;  // > 0
};

// Buffers whose lifetimes are connected by overlaps. The packing of one part does not affect
// another part.
struct GridPart {
  std::vector<GridBuffer> buffers;  // sections count from 0
  std::vector<size_t> requests;     // by buffer: index of the request
  int64_t load = 0;                 // the maximum number of units live at the same time
  int64_t units_below = 0;          // of fixed requests, to be added to all offsets
};

// A request that is live as long as all others that are connected with it. In every packing, it
// could be moved below them, so its offset is known. The others are often not connected without it.
struct FixedRequest {
  size_t request = 0;
  int64_t offset = 0;  // units
};

struct PackingGrid {
  int64_t unit_bytes = 1;  // divides every size, and every offset of a packing without gaps
  std::vector<GridPart> parts;
  std::vector<FixedRequest> fixed;
  int64_t fixed_height = 0;  // units: the end of the highest fixed request
};

// Requests of 0 bytes are omitted. Throws like plan_memory().
PackingGrid make_grid(std::span<const BufferRequest> requests, int64_t alignment);

// The height in units of the highest top of `buffers` at `offsets`.
int64_t height_of(std::span<const GridBuffer> buffers, std::span<const int64_t> offsets);

// A buffer that is part of a merged buffer.
struct MergedPart {
  size_t buffer = 0;
  int64_t offset = 0;  // from the beginning of the merged buffer
};

// Buffers that are merged (merge_buffers.cc), which makes packing problems smaller.
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
