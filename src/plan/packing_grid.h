// The packing problem of memory_plan.h without units of measure: times become sections, and bytes
// become multiples of a unit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/memory_plan.h"

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

}  // namespace tessera
