// The loops of group_normalization.cc, compiled for every instruction set that Highway supports.
#pragma once

#include <cstdint>

#include "base/activation.h"

namespace tessera::native {

// Pixels with their channels side by side; `stride` elements from one pixel to the next.
struct PixelRun {
  int64_t pixels = 0;
  int64_t channels = 0;
  int64_t stride = 0;
};

struct GroupLoops {
  // Adds the elements of each channel to `sums` and their squares to `squares`.
  void (*add_moments)(const float* from, const PixelRun& run, double* sums,
                      double* squares) = nullptr;
  // to = activation((from - means) * factors + shifts), with parameters by channel. `to` may be
  // `from`.
  void (*normalize)(const float* from, const PixelRun& run, const float* means,
                    const float* factors, const float* shifts, const Activation& activation,
                    float* to) = nullptr;
};

// For the best instruction set of this processor.
GroupLoops find_group_loops();

}  // namespace tessera::native
