// How much work is worth a thread of its own.
#pragma once

namespace tessera::native {

// The minimum number of floating-point operations for one thread.
inline constexpr double kGrainFlops = 256 * 1024;

}  // namespace tessera::native
