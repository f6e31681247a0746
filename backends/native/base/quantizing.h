// Lanes of numbers as integers of 8 or 16 bits, as QuantizeLinear defines them. Compiled once for
// each instruction set: files that foreach_target.h includes include this header after highway.h.
#if defined(TESSERA_NATIVE_QUANTIZING_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_NATIVE_QUANTIZING_H
#undef TESSERA_NATIVE_QUANTIZING_H
#else
#define TESSERA_NATIVE_QUANTIZING_H
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatLanes = hn::ScalableTag<float>;
using IntegerLanes = hn::Rebind<int32_t, FloatLanes>;

// The integers from memory, as int32.
template <class T>
HWY_INLINE hn::Vec<IntegerLanes> promoted(IntegerLanes d, const T* from) {
  if constexpr (sizeof(T) == 4) {
    return hn::LoadU(d, from);
  } else {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, IntegerLanes>(), from));
  }
}

// The integer for one number: to the nearest, ties to even, plus the zero point, limited. NaN
// becomes the smallest integer.
template <class T>
HWY_INLINE T quantized(float real, float scale, T zero_point) {
  const float lowest = static_cast<float>(std::numeric_limits<T>::min() - int32_t{zero_point});
  const float highest = static_cast<float>(std::numeric_limits<T>::max() - int32_t{zero_point});
  const float steps = real / scale;
  const float limited = steps > lowest ? std::min(steps, highest) : lowest;
  return static_cast<T>(static_cast<int32_t>(std::nearbyint(limited)) + zero_point);
}

// Numbers of scales, to the nearest integer, between two limits that hold before the zero point is
// added.
HWY_INLINE hn::Vec<IntegerLanes> rounded_lanes(hn::Vec<FloatLanes> steps,
                                               hn::Vec<FloatLanes> lowest,
                                               hn::Vec<FloatLanes> highest) {
  const auto limited = hn::IfThenElse(hn::Gt(steps, lowest), hn::Min(steps, highest), lowest);
  return hn::NearestInt(limited);
}

// The same as quantized(), in the range of T.
template <class T>
HWY_INLINE hn::Vec<IntegerLanes> quantized_lanes(hn::Vec<FloatLanes> real,
                                                 hn::Vec<FloatLanes> scale,
                                                 hn::Vec<IntegerLanes> zero_point) {
  const FloatLanes d;
  const IntegerLanes integers;
  const auto limit = [&](int32_t number) HWY_ATTR {
    return hn::ConvertTo(d, hn::Sub(hn::Set(integers, number), zero_point));
  };
  const auto rounded = rounded_lanes(hn::Div(real, scale), limit(std::numeric_limits<T>::min()),
                                     limit(std::numeric_limits<T>::max()));
  return hn::Add(rounded, zero_point);
}

// Two vectors become one of bytes where packing works on blocks of 128 bits, as on x86.
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
inline constexpr bool kPacksPairs = true;
#else
inline constexpr bool kPacksPairs = false;
#endif

// The number of vectors of int32 that store_quantized() stores.
template <class T>
inline constexpr int64_t kQuantizedVectors = kPacksPairs && sizeof(T) == 1 ? 2 : 1;

// Stores vectors of int32 as integers of T, limited to its range.
template <class T>
class QuantizedStore {
 public:
  using Integers = hn::Rebind<T, IntegerLanes>;

  HWY_INLINE QuantizedStore() {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
    // Words 2 * b and 2 * b + 1 hold the results of block b of the first and the second vector.
    const Words words;
    constexpr int32_t kWords = hn::MaxLanes(Words());
    HWY_ALIGN int32_t order[kWords];
    for (int32_t word = 0; word < kWords; ++word) {
      order[word] = word % (kWords / 2) * 2 + word / (kWords / 2);
    }
    order_ = hn::LoadU(words, reinterpret_cast<const uint32_t*>(order));
#endif
  }

  // Stores kQuantizedVectors<T> vectors: lanes_of(0), lanes_of(1), ...
  template <class Lanes>
  HWY_INLINE void put(T* to, const Lanes& lanes_of) const {
    put(to, lanes_of, [](auto, auto vector) HWY_ATTR { return vector; });
  }

  // Same, with limit(d, vector) instead of each vector of T.
  template <class Lanes, class Limit>
  HWY_INLINE void put(T* to, const Lanes& lanes_of, const Limit& limit) const {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
    if constexpr (sizeof(T) == 1) {
      const Halves halves;
      const Bytes bytes;
      const Words words;
      const auto mixed =
          hn::DemoteTo(bytes, hn::ReorderDemote2To(halves, lanes_of(0), lanes_of(1)));
      const auto sorted =
          hn::TableLookupLanes(hn::BitCast(words, mixed), hn::IndicesFromVec(words, order_));
      hn::StoreU(limit(bytes, hn::BitCast(bytes, sorted)), bytes, to);
      return;
    }
#endif
    const Integers d;
    hn::StoreU(limit(d, hn::DemoteTo(d, lanes_of(0))), d, to);
  }

#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
 private:
  using Halves = hn::Repartition<int16_t, IntegerLanes>;
  using Bytes = hn::Rebind<std::conditional_t<sizeof(T) == 1, T, int8_t>, Halves>;
  using Words = hn::Repartition<uint32_t, Bytes>;
  hn::Vec<Words> order_;
#endif
};

}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
