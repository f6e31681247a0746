// The dynamic quantisation of float32 numbers as uint8 (DynamicQuantizeLinear): their range and 0
// become the range of the integers.
#pragma once

#include <cstdint>

#include "tessera/backend.h"

namespace tessera::native {

struct DynamicScale {
  float scale = 1;
  uint8_t zero = 0;
};

// The number of bytes of memory that find_scale() uses with `threads` threads.
int64_t find_scale_workspace(int64_t threads);

// NaN does not count.
DynamicScale find_scale(plugin::RunContext& context, int64_t threads, const float* from,
                        int64_t count, void* workspace);

void quantize_bytes(plugin::RunContext& context, const DynamicScale& scale, const float* from,
                    int64_t count, uint8_t* to);

}  // namespace tessera::native
