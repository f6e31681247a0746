// Random numbers of kernels: functions of a seed and an element's index, so that the numbers do not
// depend on threads.
#pragma once

#include <array>
#include <cmath>
#include <cstring>
#include <numbers>
#include <random>

#include "ops/op.h"

namespace tessera::ops {

// 64 random bits of the device, for nodes without a seed: each run draws other numbers.
inline uint64_t drawn_seed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

// The attribute `seed`, a float32, by its bits.
inline uint64_t float_seed(const Node& node) {
  const float* given = node.attributes.find_float("seed");
  if (given == nullptr) return drawn_seed();
  uint32_t bits = 0;
  std::memcpy(&bits, given, sizeof(bits));
  return bits;
}

// A number in [0, 1), a multiple of 2^-53: SplitMix64's output function (Steele, Lea, Flood 2014)
// on the index.
inline double uniform_number(uint64_t seed, int64_t index) {
  uint64_t bits = seed + (static_cast<uint64_t>(index) + 1) * 0x9e3779b97f4a7c15ULL;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
  bits ^= bits >> 31;
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

// Two numbers of the normal distribution with mean 0 and deviation 1, of two uniform ones (Box and
// Muller 1958).
inline std::array<double, 2> normal_pair(uint64_t seed, int64_t pair) {
  const double radius = std::sqrt(-2 * std::log(1 - uniform_number(seed, 2 * pair)));
  const double angle = 2 * std::numbers::pi * uniform_number(seed, 2 * pair + 1);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace tessera::ops
