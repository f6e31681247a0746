#include "ops/convert_elements.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

// Bools are read as bytes: a corrupt file may contain other values than 0 and 1.
struct Byte {
  uint8_t bits = 0;
};

template <class Visit>
void visit_any(DataType type, const Visit& visit) {
  if (type == DataType::Bool) {
    visit(TypeTag<Byte>{});
  } else {
    visit_numeric(type, visit);
  }
}

template <class Floating>
int64_t saturated_int64(Floating value) {
  // -2^63 is exact in every floating type here; 2^63 is the first value above the range.
  if (value >= Floating{0x1p63}) return std::numeric_limits<int64_t>::max();
  if (value <= Floating{-0x1p63}) return std::numeric_limits<int64_t>::min();
  return value != value ? 0 : static_cast<int64_t>(value);
}

template <class To, class Floating>
To integer_from(Floating value) {
  if constexpr (std::is_same_v<To, uint64_t>) {
    if (value >= Floating{0x1p64}) return std::numeric_limits<To>::max();
    if (value >= Floating{0x1p63}) return static_cast<To>(value);
  }
  const int64_t wide = saturated_int64(value);
  if constexpr (std::is_same_v<To, int32_t>) {
    if (wide > std::numeric_limits<To>::max()) return std::numeric_limits<To>::max();
    if (wide < std::numeric_limits<To>::min()) return std::numeric_limits<To>::min();
  }
  return static_cast<To>(wide);
}

// The C++ number that an element represents.
template <class From>
auto number_of(From element) {
  if constexpr (std::is_same_v<From, Byte>) {
    return static_cast<uint8_t>(element.bits != 0);
  } else {
    return static_cast<compute_t<From>>(element);
  }
}

template <class To, class Number>
To element_from(Number number) {
  if constexpr (std::is_same_v<To, Byte>) {
    return {static_cast<uint8_t>(number != 0)};
  } else if constexpr (std::is_floating_point_v<Number> && std::is_integral_v<To>) {
    return integer_from<To>(number);
  } else {
    return static_cast<To>(number);
  }
}

void convert_numbers(DataType from, const void* source, DataType to, void* target, int64_t count) {
  visit_any(from, [&](auto from_tag) {
    using From = typename decltype(from_tag)::type;
    visit_any(to, [&](auto to_tag) {
      using To = typename decltype(to_tag)::type;
      const From* input = static_cast<const From*>(source);
      To* output = static_cast<To*>(target);
      for (int64_t index = 0; index < count; ++index) {
        output[index] = element_from<To>(number_of(input[index]));
      }
    });
  });
}

// The type that holds all numbers of a small type.
DataType wide_type(DataType small) {
  return is_small_float(small) ? DataType::Float64 : DataType::Int8;
}

// Whether widen_small() gives elements of `to` itself. Both are copied bit by bit, because 2^-127
// is a denormal number of them, which arithmetic may flush. They hold all small floats.
bool is_direct(DataType from, DataType to) {
  return is_small_float(from) && (to == DataType::Float32 || to == DataType::BFloat16);
}

// Small elements as numbers of wide_type(), or as is_direct() says.
void widen_small(DataType from, const uint8_t* source, DataType to, void* target, int64_t count) {
  if (!is_small_float(from)) {
    auto* integers = static_cast<int8_t*>(target);
    for (int64_t index = 0; index < count; ++index) {
      integers[index] = small_integer(from, source[index]);
    }
    return;
  }
  const std::array<float, 256>& values = small_float_values(from);
  if (is_direct(from, to)) {
    for (int64_t index = 0; index < count; ++index) {
      const auto bits = std::bit_cast<uint32_t>(values[source[index]]);
      if (to == DataType::Float32) {
        static_cast<uint32_t*>(target)[index] = bits;
      } else {
        static_cast<uint16_t*>(target)[index] = static_cast<uint16_t>(bits >> 16);
      }
    }
    return;
  }
  auto* numbers = static_cast<double*>(target);
  const bool is_power = from == DataType::Float8E8M0;
  for (int64_t index = 0; index < count; ++index) {
    numbers[index] = is_power && source[index] == 0 ? 0x1p-127 : double{values[source[index]]};
  }
}

// A double that rounds to fewer digits as the integer itself does; see rounded_to_odd() of
// tessera/float16.h.
double rounded_to_odd_double(uint64_t magnitude) {
  constexpr int kDigits = 53;
  const int excess = static_cast<int>(std::bit_width(magnitude)) - kDigits;
  if (excess <= 0) return static_cast<double>(magnitude);
  uint64_t kept = magnitude >> excess;
  if (kept << excess != magnitude) kept |= 1U;
  return static_cast<double>(kept << excess);
}

// The double of a float32, also if it is denormal and the thread reads such ones as zero.
double double_of_bits(uint32_t bits) {
  if ((bits & 0x7f800000U) != 0) return double{std::bit_cast<float>(bits)};
  const double magnitude = static_cast<double>(bits & 0x7fffffU) * 0x1p-149;
  return (bits >> 31) != 0 ? -magnitude : magnitude;
}

// Powers of two reach from denormal float32 to integers of more than 53 bits.
void to_doubles_for_rounding(DataType from, const void* source, double* target, int64_t count) {
  if (from == DataType::Float32 || from == DataType::BFloat16) {
    const bool is_short = from == DataType::BFloat16;
    for (int64_t index = 0; index < count; ++index) {
      target[index] =
          double_of_bits(is_short ? uint32_t{static_cast<const uint16_t*>(source)[index]} << 16
                                  : static_cast<const uint32_t*>(source)[index]);
    }
    return;
  }
  if (from != DataType::UInt64 && from != DataType::Int64) {
    return convert_numbers(from, source, DataType::Float64, target, count);
  }
  const auto* integers = static_cast<const uint64_t*>(source);
  for (int64_t index = 0; index < count; ++index) {
    const bool is_negative = from == DataType::Int64 && static_cast<int64_t>(integers[index]) < 0;
    const double magnitude =
        rounded_to_odd_double(is_negative ? 0 - integers[index] : integers[index]);
    target[index] = is_negative ? -magnitude : magnitude;
  }
}

// Numbers of a type that is not small as elements of a small type.
void narrow_to_small(DataType from, const void* source, DataType to, uint8_t* target, int64_t count,
                     SmallFloatRounding rounding) {
  if (!is_small_float(to)) {
    convert_numbers(from, source, DataType::Int8, target, count);
    for (int64_t index = 0; index < count; ++index) {
      target[index] = static_cast<uint8_t>(small_integer(to, target[index]));
    }
    return;
  }
  std::array<double, kConvertBlock> numbers;
  to_doubles_for_rounding(from, source, numbers.data(), count);
  for (int64_t index = 0; index < count; ++index) {
    target[index] = small_float_bits(to, numbers[static_cast<size_t>(index)], rounding);
  }
}

}  // namespace

void convert_elements(DataType from, const void* source, DataType to, void* target, int64_t count,
                      SmallFloatRounding rounding) {
  if (!is_small(from) && !is_small(to)) return convert_numbers(from, source, to, target, count);
  if (from == to) {
    if (count > 0) std::memcpy(target, source, static_cast<size_t>(count));
    return;
  }
  const auto* input = static_cast<const uint8_t*>(source);
  auto* output = static_cast<uint8_t*>(target);
  const int64_t from_bytes = element_bytes(from);
  const int64_t to_bytes = element_bytes(to);
  std::array<double, kConvertBlock> block;
  for (int64_t begin = 0; begin < count; begin += kConvertBlock) {
    const int64_t length = std::min(kConvertBlock, count - begin);
    const void* numbers = input + begin * from_bytes;
    void* const result = output + begin * to_bytes;
    DataType wide = from;
    if (is_small(from)) {
      widen_small(from, input + begin, to, is_direct(from, to) ? result : block.data(), length);
      if (is_direct(from, to)) continue;
      wide = wide_type(from);
      numbers = block.data();
    }
    if (is_small(to)) {
      narrow_to_small(wide, numbers, to, static_cast<uint8_t*>(result), length, rounding);
    } else {
      convert_numbers(wide, numbers, to, result, length);
    }
  }
}

}  // namespace tessera::ops
