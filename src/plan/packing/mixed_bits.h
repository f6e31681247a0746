// A hash function, which also serves as a generator of random numbers.
#pragma once

#include <cstdint>

namespace tessera {

// The finaliser of SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number
// Generators", 2014): each bit of the result depends on all bits of `value`.
constexpr uint64_t mixed_bits(uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31U);
}

}  // namespace tessera
