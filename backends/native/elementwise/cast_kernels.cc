// Conversions between element types. Included once for each instruction set by foreach_target.h:
// HWY_NAMESPACE differs each time.
//   to bool:             whether the element is not zero (NaN is not).
//   integer to integer:  the lowest bits, as in two's complement.
//   to floating point:   the nearest value, ties to even; overflow becomes infinity. To 16 bits
//                        through a float32 that rounds as the number does.
//   floating to integer: truncated towards zero, NaN becomes 0. int32 and int64 saturate; other
//   types
//                        take the lowest bits of the int64; uint64 saturates at its maximum.
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "elementwise/element_loops.h"
#include "tessera/backend.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "elementwise/cast_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, and once for each instruction set too.
#include "elementwise/generic_loops.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// --- Numbers -------------------------------------------------------------------------------------

float float_of_bits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// The lowest bits of an integer.
struct Bits {
  template <class T, class To>
  static To of(T x) {
    return static_cast<To>(x);
  }
};

// An integer or floating-point number, converted to floating point.
struct Nearest {
  template <class T, class To>
  static To of(T x) {
    return static_cast<To>(x);
  }
};

struct Truth {
  template <class T, class To>
  static To of(T x) {
    return static_cast<To>(x != 0);
  }
};

// Written so that every step is a vector instruction: values in range are converted, then selected.
struct Saturated {
  template <class T, class To>
  static To of(T x) {
    constexpr T kBeyond = sizeof(To) == 4 ? T{0x1p31} : T{0x1p63};
    T inside = x == x ? x : T{0};
    inside = inside < -kBeyond ? -kBeyond : inside;
    inside = inside >= kBeyond ? T{0} : inside;
    const To result = static_cast<To>(inside);
    return x >= kBeyond ? std::numeric_limits<To>::max() : result;
  }
};

struct LowBits {
  template <class T, class To>
  static To of(T x) {
    if constexpr (std::is_same_v<T, float> && sizeof(To) == 1) {
      // From 2^31 on, a float32 is a multiple of 256, up to the largest integer of 64 bits.
      const float inside = x > -0x1p31F && x < 0x1p31F ? x : 0.0F;
      const auto low = static_cast<To>(static_cast<int32_t>(inside));
      return x >= 0x1p63F ? static_cast<To>(0xFF) : low;
    } else {
      return static_cast<To>(Saturated::of<T, int64_t>(x));
    }
  }
};

struct Unsigned64 {
  template <class T, class To>
  static To of(T x) {
    if (x >= T{0x1p64}) return std::numeric_limits<To>::max();
    if (x >= T{0x1p63}) return static_cast<To>(x);
    return static_cast<To>(Saturated::of<T, int64_t>(x));
  }
};

// A float that rounds to 16 bits as the number does: a number between two floats becomes the one
// whose last digit is odd (tessera/float16.h).
struct Odd {
  template <class T, class To>
  static To of(T x) {
    using Wide = std::conditional_t<sizeof(T) == 4, int64_t, T>;
    const auto number = static_cast<Wide>(x);
    const auto nearest = static_cast<float>(x);
    const Wide found = back<Wide>(nearest);
    const uint32_t bits = bits_of(nearest);
    // The bits of a negative float grow as it falls.
    const bool is_after = (found < number) != ((bits >> 31U) != 0);
    const uint32_t neighbour = is_after ? bits + 1 : bits - 1;
    const bool is_kept = static_cast<int>(found == number) | static_cast<int>(number != number) |
                         static_cast<int>((bits & 1U) != 0);
    return float_of_bits(is_kept ? bits : neighbour);
  }
  template <class Wide>
  static Wide back(float x) {
    if constexpr (std::is_same_v<Wide, double>) return x;
    if constexpr (std::is_same_v<Wide, uint64_t>) return Unsigned64::of<float, Wide>(x);
    if constexpr (std::is_same_v<Wide, int64_t>) return Saturated::of<float, Wide>(x);
  }
};

template <class How, class T, class To>
void convert(const LoopCall& call) {
  const T* from = static_cast<const T*>(call.from[0]);
  To* to = static_cast<To*>(call.to);
  for_elements(
      call.count, [=](int64_t index) HWY_ATTR { to[index] = How::template of<T, To>(from[index]); },
      to, from);
}

// Most numbers fit 32 bits, to which there are vector instructions.
template <class T>
void to_int64(const LoopCall& call) {
  constexpr int64_t kBlock = 64;
  const T* from = static_cast<const T*>(call.from[0]);
  auto* to = static_cast<int64_t*>(call.to);
  for (int64_t begin = 0; begin < call.count; begin += kBlock, from += kBlock, to += kBlock) {
    const int64_t count = std::min(kBlock, call.count - begin);
    int outside = 0;
    for (int64_t index = 0; index < count; ++index) {
      const T x = from[index];
      outside |= static_cast<int>(!(x > T{-0x1p31} && x < T{0x1p31}));
    }
    if (outside == 0) {
      for (int64_t index = 0; index < count; ++index) to[index] = static_cast<int32_t>(from[index]);
    } else {
      for (int64_t index = 0; index < count; ++index) {
        to[index] = Saturated::of<T, int64_t>(from[index]);
      }
    }
  }
}

// --- 16-bit floats -------------------------------------------------------------------------------

void from_bfloat16(const LoopCall& call) {
  const auto* from = static_cast<const uint16_t*>(call.from[0]);
  auto* to = static_cast<uint32_t*>(call.to);
  for_elements(
      call.count, [=](int64_t index) HWY_ATTR { to[index] = uint32_t{from[index]} << 16U; }, to,
      from);
}

void to_bfloat16(const LoopCall& call) {
  const auto* from = static_cast<const uint32_t*>(call.from[0]);
  auto* to = static_cast<uint16_t*>(call.to);
  const auto step = [=](int64_t index) HWY_ATTR {
    const uint32_t bits = from[index];
    // Adds half of the last place, less one if that place is even: ties go to even.
    const uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U;
    const uint32_t quiet = (bits >> 16U) | 0x40U;
    to[index] = static_cast<uint16_t>((bits & 0x7FFFFFFFU) > 0x7F800000U ? quiet : rounded);
  };
  for_elements(call.count, step, to, from);
}

#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
constexpr bool kHasFloat16 = true;
#else
constexpr bool kHasFloat16 = false;
#endif

float float_of_half(uint16_t half) {
  const uint32_t sign = (uint32_t{half} & 0x8000U) << 16U;
  const uint32_t magnitude = half & 0x7FFFU;
  if (magnitude >= 0x7C00U) return float_of_bits(sign | 0x7F800000U | (magnitude & 0x3FFU) << 13U);
  if (magnitude >= 0x0400U) return float_of_bits(sign | ((magnitude << 13U) + 0x38000000U));
  const float small = static_cast<float>(magnitude) * 0x1p-24F;
  return sign != 0 ? -small : small;
}

uint16_t half_of_float(float value) {
  const uint32_t bits = bits_of(value);
  const uint32_t sign = (bits >> 16U) & 0x8000U;
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  uint32_t half = 0;
  if (magnitude > 0x7F800000U) {
    half = 0x7E00U;
  } else if (magnitude >= 0x47800000U) {
    half = 0x7C00U;
  } else if (magnitude >= 0x38800000U) {
    const uint32_t rounded = magnitude + 0xFFFU + ((magnitude >> 13U) & 1U);
    half = (rounded - 0x38000000U) >> 13U;
  } else {
    // Adding a number whose last place is 2^-24 rounds to that place.
    half = bits_of(float_of_bits(magnitude) + 0.5F) - bits_of(0.5F);
  }
  return static_cast<uint16_t>(sign | half);
}

void from_float16(const LoopCall& call) {
  const auto* from = static_cast<const uint16_t*>(call.from[0]);
  auto* to = static_cast<float*>(call.to);
  int64_t index = 0;
  if constexpr (kHasFloat16) {
    const hn::ScalableTag<float> d;
    const hn::Rebind<hwy::float16_t, decltype(d)> halves;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto* source = reinterpret_cast<const hwy::float16_t*>(from);
    for (; index + lanes <= call.count; index += lanes) {
      prefetch_read(from + index);
      prefetch_write(to + index);
      hn::StoreU(hn::PromoteTo(d, hn::LoadU(halves, source + index)), d, to + index);
    }
  }
  for (; index < call.count; ++index) to[index] = float_of_half(from[index]);
}

void to_float16(const LoopCall& call) {
  const auto* from = static_cast<const float*>(call.from[0]);
  auto* to = static_cast<uint16_t*>(call.to);
  int64_t index = 0;
  if constexpr (kHasFloat16) {
    const hn::ScalableTag<float> d;
    const hn::Rebind<hwy::float16_t, decltype(d)> halves;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    auto* target = reinterpret_cast<hwy::float16_t*>(to);
    for (; index + lanes <= call.count; index += lanes) {
      prefetch_read(from + index);
      prefetch_write(to + index);
      hn::StoreU(hn::DemoteTo(halves, hn::LoadU(d, from + index)), halves, target + index);
    }
  }
  for (; index < call.count; ++index) to[index] = half_of_float(from[index]);
}

// --- Tables of conversions -----------------------------------------------------------------------

template <class How, class T, class To>
constexpr LoopSet kLoops = {{convert<How, T, To>}};

template <class T>
LoopSet integer_loops(int32_t to) {
  switch (to) {
    case TESSERA_BOOL:
      return kLoops<Truth, T, uint8_t>;
    case TESSERA_INT8:
    case TESSERA_UINT8:
      return kLoops<Bits, T, uint8_t>;
    case TESSERA_INT16:
    case TESSERA_UINT16:
      return kLoops<Bits, T, uint16_t>;
    case TESSERA_INT32:
    case TESSERA_UINT32:
      return kLoops<Bits, T, uint32_t>;
    case TESSERA_INT64:
    case TESSERA_UINT64:
      return kLoops<Bits, T, uint64_t>;
    case TESSERA_FLOAT32:
      return kLoops<Nearest, T, float>;
    case TESSERA_FLOAT64:
      return kLoops<Nearest, T, double>;
    default:
      return {};
  }
}

// Bools are bytes, which may have other values than 0 and 1 in a damaged file.
LoopSet bool_loops(int32_t to) {
  switch (plugin::element_bytes(to)) {
    case 1:
      return kLoops<Truth, uint8_t, uint8_t>;
    case 2:
      return to == TESSERA_INT16 || to == TESSERA_UINT16 ? kLoops<Truth, uint8_t, uint16_t>
                                                         : LoopSet();
    case 4:
      return to == TESSERA_FLOAT32 ? kLoops<Truth, uint8_t, float>
                                   : kLoops<Truth, uint8_t, uint32_t>;
    case 8:
      return to == TESSERA_FLOAT64 ? kLoops<Truth, uint8_t, double>
                                   : kLoops<Truth, uint8_t, uint64_t>;
    default:
      return {};
  }
}

template <class T>
LoopSet floating_loops(int32_t to) {
  switch (to) {
    case TESSERA_BOOL:
      return kLoops<Truth, T, uint8_t>;
    case TESSERA_INT8:
    case TESSERA_UINT8:
      return kLoops<LowBits, T, uint8_t>;
    case TESSERA_INT16:
    case TESSERA_UINT16:
      return kLoops<LowBits, T, uint16_t>;
    case TESSERA_INT32:
      return kLoops<Saturated, T, int32_t>;
    case TESSERA_INT64:
      return {{to_int64<T>}};
    case TESSERA_UINT32:
      return kLoops<LowBits, T, uint32_t>;
    case TESSERA_UINT64:
      return kLoops<Unsigned64, T, uint64_t>;
    case TESSERA_FLOAT32:
      return kLoops<Nearest, T, float>;
    case TESSERA_FLOAT64:
      return kLoops<Nearest, T, double>;
    default:
      return {};
  }
}

}  // namespace

LoopSet odd_loops_of(int32_t from) {
  switch (from) {
    case TESSERA_INT32:
      return kLoops<Odd, int32_t, float>;
    case TESSERA_INT64:
      return kLoops<Odd, int64_t, float>;
    case TESSERA_UINT32:
      return kLoops<Odd, uint32_t, float>;
    case TESSERA_UINT64:
      return kLoops<Odd, uint64_t, float>;
    case TESSERA_FLOAT64:
      return kLoops<Odd, double, float>;
    default:
      return {};
  }
}

LoopSet cast_loops_of(int32_t from, int32_t to) {
  if (from == TESSERA_FLOAT32 && to == TESSERA_FLOAT16) return {{to_float16}};
  if (from == TESSERA_FLOAT32 && to == TESSERA_BFLOAT16) return {{to_bfloat16}};
  switch (from) {
    case TESSERA_BOOL:
      return bool_loops(to);
    case TESSERA_INT8:
      return integer_loops<int8_t>(to);
    case TESSERA_INT16:
      return integer_loops<int16_t>(to);
    case TESSERA_INT32:
      return integer_loops<int32_t>(to);
    case TESSERA_INT64:
      return integer_loops<int64_t>(to);
    case TESSERA_UINT8:
      return integer_loops<uint8_t>(to);
    case TESSERA_UINT16:
      return integer_loops<uint16_t>(to);
    case TESSERA_UINT32:
      return integer_loops<uint32_t>(to);
    case TESSERA_UINT64:
      return integer_loops<uint64_t>(to);
    case TESSERA_FLOAT16:
      return to == TESSERA_FLOAT32 ? LoopSet{{from_float16}} : LoopSet();
    case TESSERA_BFLOAT16:
      return to == TESSERA_FLOAT32 ? LoopSet{{from_bfloat16}} : LoopSet();
    case TESSERA_FLOAT32:
      return floating_loops<float>(to);
    case TESSERA_FLOAT64:
      return floating_loops<double>(to);
    default:
      return {};
  }
}

}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

HWY_EXPORT(cast_loops_of);
HWY_EXPORT(odd_loops_of);

LoopSet find_cast_loops(int32_t from, int32_t to) {
  return HWY_DYNAMIC_DISPATCH(cast_loops_of)(from, to);
}

LoopSet find_odd_loops(int32_t from) { return HWY_DYNAMIC_DISPATCH(odd_loops_of)(from); }

}  // namespace tessera::native

#endif  // HWY_ONCE
