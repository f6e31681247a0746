#include "verify/element_loops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace tessera::verification {

bool may_differ_more(const float* wanted, const float* given, const float* summed,
                     float least_scale, float limit) {
  int is_worse = 0;
  for (size_t index = 0; index < kElementBlock; ++index) {
    const float sum = std::fabs(summed[index]);
    float scale = std::max(std::fabs(wanted[index]), least_scale);
    scale = std::max(scale, sum);
    // Zero times a number that is not finite is NaN, and every comparison with NaN is false.
    const float difference = std::fabs(given[index] - wanted[index]) + 0 * sum;
    is_worse |= static_cast<int>(!(difference <= limit * scale));
  }
  return is_worse != 0;
}

float largest_finite(std::span<const float> elements) {
  // Magnitudes are ordered as their bits are, of which compilers can find the largest in vectors.
  constexpr auto kInfinity = std::bit_cast<int32_t>(std::numeric_limits<float>::infinity());
  int32_t largest = 0;
  for (const float element : elements) {
    const int32_t magnitude = std::bit_cast<int32_t>(element) & 0x7FFFFFFF;
    largest = std::max(largest, magnitude < kInfinity ? magnitude : 0);
  }
  return std::bit_cast<float>(largest);
}

bool are_finite(std::span<const float> elements) {
  int is_other = 0;
  for (const float element : elements) {
    is_other |= static_cast<int>(!(std::fabs(element) <= std::numeric_limits<float>::max()));
  }
  return is_other == 0;
}

template <class Bits>
void copy_where_equal(std::span<const Bits> left, std::span<const Bits> right,
                      std::span<const Bits> source, std::span<Bits> target) {
  for (size_t index = 0; index < target.size(); ++index) {
    target[index] = left[index] == right[index] ? source[index] : target[index];
  }
}
template void copy_where_equal(std::span<const uint8_t>, std::span<const uint8_t>,
                               std::span<const uint8_t>, std::span<uint8_t>);
template void copy_where_equal(std::span<const uint16_t>, std::span<const uint16_t>,
                               std::span<const uint16_t>, std::span<uint16_t>);
template void copy_where_equal(std::span<const uint32_t>, std::span<const uint32_t>,
                               std::span<const uint32_t>, std::span<uint32_t>);
template void copy_where_equal(std::span<const uint64_t>, std::span<const uint64_t>,
                               std::span<const uint64_t>, std::span<uint64_t>);

template <class Bits>
void clear_signs(std::span<Bits> elements) {
  // Not ~Bits{0} >> 1: 16-bit operands are promoted to int, and the shift would insert sign bits.
  constexpr auto kAllOthers = static_cast<Bits>(std::numeric_limits<Bits>::max() >> 1);
  for (Bits& element : elements) element &= kAllOthers;
}
template void clear_signs(std::span<uint16_t>);
template void clear_signs(std::span<uint32_t>);
template void clear_signs(std::span<uint64_t>);

}  // namespace tessera::verification
