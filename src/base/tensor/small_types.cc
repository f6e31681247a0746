#include "base/tensor/small_types.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/errors/check.h"

namespace tessera {
namespace {

// What the bits beyond the numbers stand for.
enum class Specials : uint8_t {
  None,
  Nan,              // all bits but the sign: NaN
  InfinityAndNan,   // the largest exponent, as in IEEE 754
  NegativeZeroNan,  // the sign alone: NaN; there is no negative zero
  PowersOfTwo,      // no sign and no fraction; all bits: NaN
};

struct FloatFormat {
  DataType type;
  int bits;
  int fraction_bits;
  int bias;         // of the exponent
  uint8_t largest;  // bits of the largest finite number
  Specials specials;
};

constexpr FloatFormat kFormats[] = {
    {DataType::Float8E4M3FN, 8, 3, 7, 0x7e, Specials::Nan},
    {DataType::Float8E4M3FNUZ, 8, 3, 8, 0x7f, Specials::NegativeZeroNan},
    {DataType::Float8E5M2, 8, 2, 15, 0x7b, Specials::InfinityAndNan},
    {DataType::Float8E5M2FNUZ, 8, 2, 16, 0x7f, Specials::NegativeZeroNan},
    {DataType::Float8E8M0, 8, 0, 127, 0xfe, Specials::PowersOfTwo},
    {DataType::Float4E2M1, 4, 1, 1, 0x7, Specials::None},
};
constexpr size_t kFormatCount = std::size(kFormats);

constexpr size_t index_of(DataType type) {
  return static_cast<size_t>(type) - static_cast<size_t>(DataType::Float8E4M3FN);
}

const FloatFormat& format_of(DataType type) {
  TESSERA_CHECK(is_small_float(type), "only small floats have a format");
  return kFormats[index_of(type)];
}

// 2^exponent, for exponents of doubles that are normal numbers.
constexpr double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(1023 + exponent) << 52);
}

constexpr uint8_t sign_bit(const FloatFormat& format) {
  return format.specials == Specials::PowersOfTwo ? uint8_t{0}
                                                  : static_cast<uint8_t>(1U << (format.bits - 1));
}

constexpr float value_of(const FloatFormat& format, uint8_t byte) {
  const auto bits = static_cast<uint8_t>(byte & ((1U << format.bits) - 1));
  const uint8_t sign = sign_bit(format);
  const auto magnitude = static_cast<uint8_t>(bits & ~sign);
  const bool is_negative = (bits & sign) != 0;
  if (format.specials == Specials::PowersOfTwo) {
    return bits == 0xff ? std::numeric_limits<float>::quiet_NaN()
                        : static_cast<float>(power_of_two(bits - format.bias));
  }
  const bool is_nan_of_zero = format.specials == Specials::NegativeZeroNan && bits == sign;
  if (is_nan_of_zero) return std::numeric_limits<float>::quiet_NaN();
  if (magnitude > format.largest) {
    const bool is_infinite =
        format.specials == Specials::InfinityAndNan && magnitude == format.largest + 1;
    const float special = is_infinite ? std::numeric_limits<float>::infinity()
                                      : std::numeric_limits<float>::quiet_NaN();
    return is_negative ? -special : special;
  }
  const int exponent = magnitude >> format.fraction_bits;
  const int fraction = magnitude & ((1 << format.fraction_bits) - 1);
  const int whole = exponent == 0 ? fraction : fraction + (1 << format.fraction_bits);
  const double step = power_of_two(std::max(exponent, 1) - format.bias - format.fraction_bits);
  const auto number = static_cast<float>(whole * step);
  return is_negative ? -number : number;
}

using Values = std::array<float, 256>;

constexpr std::array<Values, kFormatCount> all_values() {
  std::array<Values, kFormatCount> all{};
  for (size_t format = 0; format < kFormatCount; ++format) {
    for (size_t byte = 0; byte < 256; ++byte) {
      all[format][byte] = value_of(kFormats[format], static_cast<uint8_t>(byte));
    }
  }
  return all;
}

constexpr std::array<Values, kFormatCount> kValues = all_values();

constexpr uint64_t kSign = uint64_t{1} << 63;
constexpr uint64_t kInfinity = uint64_t{0x7ff} << 52;
constexpr uint64_t kImplicitBit = uint64_t{1} << 52;

uint8_t power_bits(uint64_t magnitude, const FloatFormat& format, SmallFloatRounding rounding) {
  constexpr uint8_t kNan = 0xff;
  if (magnitude > kInfinity) return kNan;
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  const uint64_t fraction = magnitude & (kImplicitBit - 1);
  const int lowest = -format.bias;
  const int highest = format.largest - format.bias;
  const bool is_below = exponent < lowest;
  const bool is_above = exponent > highest || (exponent == highest && fraction != 0);
  if ((is_below || is_above) && !rounding.saturates) return kNan;
  if (is_below) return 0;
  if (is_above) return format.largest;
  const bool goes_up = rounding.power == PowerRounding::Up        ? fraction != 0
                       : rounding.power == PowerRounding::Nearest ? fraction >= kImplicitBit / 2
                                                                  : false;
  return static_cast<uint8_t>(exponent - lowest + (goes_up ? 1 : 0));
}

uint8_t nan_bits(const FloatFormat& format, uint8_t sign) {
  switch (format.specials) {
    case Specials::None:
      return sign ^ sign_bit(format);
    case Specials::Nan:
      return sign | uint8_t{0x7f};
    case Specials::InfinityAndNan:
      return sign | uint8_t{0x7e};  // quiet
    default:
      return sign_bit(format);
  }
}

// The bits of what is beyond the range.
uint8_t overflow_bits(const FloatFormat& format, uint8_t sign, bool saturates) {
  if (saturates || format.specials == Specials::None) return sign | format.largest;
  if (format.specials == Specials::InfinityAndNan) {
    return static_cast<uint8_t>(sign | (format.largest + 1));
  }
  return nan_bits(format, sign);
}

}  // namespace

const std::array<float, 256>& small_float_values(DataType type) {
  format_of(type);
  return kValues[index_of(type)];
}

uint8_t small_float_bits(DataType type, double number, SmallFloatRounding rounding) {
  const FloatFormat& format = format_of(type);
  const auto bits = std::bit_cast<uint64_t>(number);
  const uint64_t magnitude = bits & ~kSign;
  if (format.specials == Specials::PowersOfTwo) return power_bits(magnitude, format, rounding);
  const uint8_t sign = (bits & kSign) != 0 ? sign_bit(format) : uint8_t{0};
  if (magnitude > kInfinity) return nan_bits(format, sign);
  if (magnitude == kInfinity) return overflow_bits(format, sign, rounding.saturates);
  const int smallest = 1 - format.bias;  // exponent of the smallest normal number
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  const int last = std::max(exponent, smallest);
  // The bits that are cut, of a number with its implicit bit.
  const int cut = 52 - format.fraction_bits + last - exponent;
  constexpr int kAllBits = 54;
  uint64_t rounded = 0;  // in units of the last bit
  if (cut < kAllBits) {
    const uint64_t whole = (magnitude & (kImplicitBit - 1)) | kImplicitBit;
    const uint64_t is_odd = whole >> cut & 1U;
    rounded = (whole + (uint64_t{1} << (cut - 1)) - 1 + is_odd) >> cut;
  }
  // The implicit bit adds 1 to the exponent.
  const uint64_t code = rounded + (static_cast<uint64_t>(last - smallest) << format.fraction_bits);
  if (code > format.largest) return overflow_bits(format, sign, rounding.saturates);
  if (code == 0 && format.specials == Specials::NegativeZeroNan) return 0;
  return static_cast<uint8_t>(sign | code);
}

int8_t small_integer(DataType type, uint8_t bits) {
  const int unused = 8 - static_cast<int>(element_bits(type));
  const auto high = static_cast<uint8_t>(bits << unused);
  const bool is_signed = type == DataType::Int4 || type == DataType::Int2;
  if (is_signed) return static_cast<int8_t>(static_cast<int8_t>(high) >> unused);
  return static_cast<int8_t>(high >> unused);
}

int64_t packed_bytes(DataType type, int64_t count) {
  const int64_t per_byte = 8 / element_bits(type);
  return count / per_byte + (count % per_byte == 0 ? 0 : 1);
}

bool is_packed(DataType type) { return is_small(type) && element_bits(type) < 8; }

void unpack(DataType type, std::span<const uint8_t> packed, std::span<uint8_t> elements) {
  const auto bits = static_cast<size_t>(element_bits(type));
  const size_t per_byte = 8 / bits;
  const auto mask = static_cast<uint8_t>((1U << bits) - 1);
  const bool is_float = is_small_float(type);
  for (size_t index = 0; index < elements.size(); ++index) {
    const auto own =
        static_cast<uint8_t>(packed[index / per_byte] >> index % per_byte * bits & mask);
    elements[index] = is_float ? own : static_cast<uint8_t>(small_integer(type, own));
  }
}

void pack(DataType type, std::span<const uint8_t> elements, std::span<uint8_t> packed) {
  const auto bits = static_cast<size_t>(element_bits(type));
  const size_t per_byte = 8 / bits;
  const auto mask = static_cast<uint8_t>((1U << bits) - 1);
  std::ranges::fill(packed, uint8_t{0});
  for (size_t index = 0; index < elements.size(); ++index) {
    packed[index / per_byte] |=
        static_cast<uint8_t>((elements[index] & mask) << index % per_byte * bits);
  }
}

}  // namespace tessera
