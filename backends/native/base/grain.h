// How much work is worth a thread of its own.
#pragma once

#include <cstdint>

namespace tessera::native {

// The minimum number of floating-point operations for one thread.
inline constexpr double kGrainFlops = 256 * 1024;
// The minimum number of elements for one thread, if little is done with each: waking another thread
// takes as long as some thousand elements.
inline constexpr int64_t kGrain = 16 * 1024;
// The minimum number of bytes that one thread copies.
inline constexpr int64_t kGrainBytes = 64 * 1024;

}  // namespace tessera::native
