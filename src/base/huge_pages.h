// Pages of two megabytes: large memory is touched several times as fast as in small ones.
#pragma once

#include <cstddef>

namespace tessera {

inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// Where pages of `memory` were not touched yet, and whole huge ones fit, they are to be huge. A
// wish: where the system does not grant it, they are small.
void ask_for_huge_pages(void* memory, size_t bytes);

}  // namespace tessera
