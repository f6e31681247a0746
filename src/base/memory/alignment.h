// Whether addresses are aligned.
#pragma once

#include <cstdint>

namespace tessera {

inline bool is_aligned_to(const void* data, int64_t alignment_bytes) {
  return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(alignment_bytes) == 0;
}

}  // namespace tessera
