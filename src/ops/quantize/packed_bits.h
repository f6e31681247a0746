// Unsigned integers of 2, 4 or 8 bits in bytes, the first one in the lowest bits.
#pragma once

#include <cstdint>

namespace tessera::ops {

// `bits` is 2, 4 or 8.
inline uint8_t packed_at(const uint8_t* bytes, int64_t index, int64_t bits) {
  const int64_t first_bit = index * bits;
  return static_cast<uint8_t>((bytes[first_bit / 8] >> (first_bit % 8)) & ((1 << bits) - 1));
}

// The bytes that `count` integers take; rounded up.
inline int64_t packed_bytes(int64_t count, int64_t bits) {
  const int64_t in_a_byte = 8 / bits;
  return count / in_a_byte + (count % in_a_byte == 0 ? 0 : 1);
}

}  // namespace tessera::ops
