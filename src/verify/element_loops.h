// Loops over the elements of results, in a file of their own because compilers vectorise them only
// with options that others do not need (CMakeLists.txt).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tessera::verification {

// The number of elements of a block.
inline constexpr size_t kElementBlock = 256;

// For one block: whether |given - wanted| may exceed `limit` times the largest of |wanted|,
// |summed| and `least_scale` for some element, or an element of any of the three is not finite.
// Errs only towards true, by rounding.
bool may_differ_more(const float* wanted, const float* given, const float* summed,
                     float least_scale, float limit);

// The largest magnitude of the finite elements; 0 if there are none.
float largest_finite(std::span<const float> elements);

bool are_finite(std::span<const float> elements);

// Sets the elements of `target` at the positions where `left` and `right` have the same bits to
// those of `source`. All have the same size.
template <class Bits>
void copy_where_equal(std::span<const Bits> left, std::span<const Bits> right,
                      std::span<const Bits> source, std::span<Bits> target);
extern template void copy_where_equal(std::span<const uint8_t>, std::span<const uint8_t>,
                                      std::span<const uint8_t>, std::span<uint8_t>);
extern template void copy_where_equal(std::span<const uint16_t>, std::span<const uint16_t>,
                                      std::span<const uint16_t>, std::span<uint16_t>);
extern template void copy_where_equal(std::span<const uint32_t>, std::span<const uint32_t>,
                                      std::span<const uint32_t>, std::span<uint32_t>);
extern template void copy_where_equal(std::span<const uint64_t>, std::span<const uint64_t>,
                                      std::span<const uint64_t>, std::span<uint64_t>);

// Clears the highest bit of each element: the sign of a floating-point number.
template <class Bits>
void clear_signs(std::span<Bits> elements);
extern template void clear_signs(std::span<uint16_t>);
extern template void clear_signs(std::span<uint32_t>);
extern template void clear_signs(std::span<uint64_t>);

}  // namespace tessera::verification
