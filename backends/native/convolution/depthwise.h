// What depthwise.cc and depthwise_strips.cc have in common: convolutions of each channel alone, in
// layouts with contiguous channels.
#pragma once

#include <cstdint>

#include "convolution/depthwise_kernels.h"
#include "tessera/backend.h"

namespace tessera::native {

// So many of `channels` are computed together that the rows which a row of outputs reads, and
// itself, stay in the first-level cache; at least `kChannelUnit`.
int64_t channels_together(const DepthwiseProblem& problem, int64_t channels);

inline constexpr int64_t kChannelUnit = 16;  // of a block, and of a cache line

// Weights [channels, 1, rows, columns] with the taps first.
plugin::Pack taps_first_pack(const DepthwiseProblem& problem, int64_t channels);

}  // namespace tessera::native
