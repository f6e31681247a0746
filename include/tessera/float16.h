// The two 16-bit floating-point types as storage; arithmetic is done in float. Every number is
// rounded once, to nearest, ties to even; NaN stays NaN, and values that are too large become
// infinity.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace tessera {

// A number as a float that rounds to fewer digits as the number itself does: a number between two
// floats becomes the one whose last digit is odd, which is no tie of fewer digits. See Boldo and
// Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd"
// (2008).
inline float rounded_to_odd(float number) { return number; }

inline float rounded_to_odd(double number) {
  const auto nearest = static_cast<float>(number);
  const auto bits = std::bit_cast<uint32_t>(nearest);
  const double found = nearest;
  if (found == number || number != number || (bits & 1U) != 0) return nearest;
  const bool is_below = (found < 0 ? -found : found) < (number < 0 ? -number : number);
  return std::bit_cast<float>(is_below ? bits + 1 : bits - 1);
}

template <std::integral Integer>
float rounded_to_odd(Integer number) {
  constexpr int kDigits = 24;
  const auto wide = static_cast<uint64_t>(number);
  const uint64_t magnitude = number < Integer{0} ? 0 - wide : wide;
  const int excess = static_cast<int>(std::bit_width(magnitude)) - kDigits;
  if (excess <= 0) return static_cast<float>(number);
  uint64_t kept = magnitude >> excess;
  if (kept << excess != magnitude) kept |= 1U;
  const auto result = static_cast<float>(kept << excess);
  return number < Integer{0} ? -result : result;
}

template <class Number>
concept ArithmeticNumber = std::is_arithmetic_v<Number>;

// IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits.
struct Float16 {
  uint16_t bits = 0;

  Float16() = default;
  template <ArithmeticNumber Number>
  explicit Float16(Number number) : bits(encode(rounded_to_odd(number))) {}
  explicit operator float() const { return decode(bits); }

 private:
  static uint16_t encode(float value) {
    const uint32_t source = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (source >> 16) & 0x8000U;
    const uint32_t magnitude = source & 0x7fffffffU;
    if (magnitude > 0x7f800000U) return static_cast<uint16_t>(sign | 0x7e00U);
    if (magnitude >= 0x477ff000U) return static_cast<uint16_t>(sign | 0x7c00U);
    if (magnitude < 0x38800000U) {
      // Subnormal: adding 0.5 lets the float unit round at the bit that will be the lowest.
      const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
      return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000U));
    }
    const uint32_t is_odd = (magnitude >> 13) & 1U;
    return static_cast<uint16_t>(sign | ((magnitude - 0x38000000U + 0xfffU + is_odd) >> 13));
  }

  static float decode(uint16_t bits) {
    const uint32_t sign = (bits & 0x8000U) << 16;
    const uint32_t exponent = (bits >> 10) & 0x1fU;
    const uint32_t fraction = bits & 0x3ffU;
    if (exponent == 0x1fU) return std::bit_cast<float>(sign | 0x7f800000U | (fraction << 13));
    if (exponent == 0) {
      const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
      return sign != 0 ? -magnitude : magnitude;
    }
    return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (fraction << 13));
  }
};

// The upper half of a float: 1 sign, 8 exponent, 7 fraction bits.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  template <ArithmeticNumber Number>
  explicit BFloat16(Number number) : bits(encode(rounded_to_odd(number))) {}
  explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }

 private:
  static uint16_t encode(float value) {
    const uint32_t source = std::bit_cast<uint32_t>(value);
    if ((source & 0x7fffffffU) > 0x7f800000U) {
      return static_cast<uint16_t>((source >> 16) | 0x40U);
    }
    return static_cast<uint16_t>((source + 0x7fffU + ((source >> 16) & 1U)) >> 16);
  }
};

}  // namespace tessera
