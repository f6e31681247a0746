// Copies a tensor; its source and its destination may have strides.
#pragma once

#include <cstdint>
#include <vector>

#include "base/threads/parallel.h"

namespace tessera {

// Nested loops, outermost first, over pieces that are contiguous on both sides.
struct StridedCopy {
  struct Loop {
    int64_t count = 0;
    int64_t from_step = 0;  // bytes
    int64_t to_step = 0;
  };
  std::vector<Loop> loops;
  int64_t piece_bytes = 0;
};

// Strides in elements, one for each dimension.
StridedCopy plan_copy(const std::vector<int64_t>& dims, int64_t element_bytes,
                      const std::vector<int64_t>& from_strides,
                      const std::vector<int64_t>& to_strides);

void run(const StridedCopy& copy, const void* from, void* to, ThreadPool& pool);

}  // namespace tessera
