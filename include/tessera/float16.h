// The two 16-bit floating-point types as storage; arithmetic is done in float. Rounding is to
// nearest, ties to even; NaN stays NaN, and values that are too large become infinity.
#pragma once

#include <bit>
#include <cstdint>

namespace tessera {

// IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits.
struct Float16 {
  uint16_t bits = 0;

  Float16() = default;
  explicit Float16(float value) : bits(encode(value)) {}
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
  explicit BFloat16(float value) : bits(encode(value)) {}
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
