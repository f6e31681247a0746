// The loops of separable.cc, compiled for every instruction set that Highway supports.
#pragma once

#include <cstdint>

namespace tessera::native {

struct ResizeLoops {
  // to[i] = sum over taps t of weights[t] * from[sources[t] * stride + i], for i in [0, count).
  // Elements with weight 0 are ignored, even NaN.
  void (*blend)(const float* from, int64_t stride, const int32_t* sources, const float* weights,
                int64_t taps, float* to, int64_t count);
  // to[i] = sum over taps t of weights[t * count + i] * from[sources[t * count + i]], likewise.
  void (*gather)(const float* from, const int32_t* sources, const float* weights, int64_t taps,
                 float* to, int64_t count);
};

// For the best instruction set of this processor.
ResizeLoops find_resize_loops();

}  // namespace tessera::native
