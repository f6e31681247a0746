// The problem of memory_plan.h without units: time as sections, bytes as multiples of a unit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/memory_plan.h"

namespace tessera {

// Live in the sections [first, end), which are the times between two at which a buffer begins or
// ends.
struct GridBuffer {
  int first = 0;
  int end = 0;        // > first
  int64_t units = 0;  // > 0
};

// Buffers that others connect in time: what is decided for one part says nothing of another one.
struct GridPart {
  std::vector<GridBuffer> buffers;  // with sections from 0 on
  std::vector<size_t> requests;     // which these are
  int64_t load = 0;                 // units that are live at once, at most
};

struct PackingGrid {
  int64_t unit_bytes = 1;  // every offset and size of an arrangement without gaps is a multiple
  std::vector<GridPart> parts;
};

// Requests without bytes are left out. Throws as plan_memory().
PackingGrid make_grid(std::span<const BufferRequest> requests, int64_t alignment);

// Units from the ground to the top of `buffers` at `offsets`.
int64_t height_of(std::span<const GridBuffer> buffers, std::span<const int64_t> offsets);

}  // namespace tessera
