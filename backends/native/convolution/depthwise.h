// Functions that depthwise.cc and depthwise_strips.cc share: depthwise convolutions, which treat
// each channel alone, in layouts with contiguous channels.
#pragma once

#include <cstdint>

#include "convolution/depthwise_kernels.h"
#include "tessera/backend.h"

namespace tessera::native {

// The number of `channels` that are computed together, at least `kChannelUnit`, such that a row of
// outputs and the rows that it reads stay in the first-level cache.
int64_t channels_together(const DepthwiseProblem& problem, int64_t channels);

inline constexpr int64_t kChannelUnit = 16;  // of a block, and of a cache line

// Packs weights [channels, 1, rows, columns] with the taps first.
plugin::Pack taps_first_pack(const DepthwiseProblem& problem, int64_t channels);

}  // namespace tessera::native
