// Loads and stores of fewer elements than a vector has; no memory besides them is accessed.
// foreach_target.h includes this header several times, so it has no ordinary include guard.
#if defined(TESSERA_NATIVE_PARTIAL_VECTOR_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_NATIVE_PARTIAL_VECTOR_H
#undef TESSERA_NATIVE_PARTIAL_VECTOR_H
#else
#define TESSERA_NATIVE_PARTIAL_VECTOR_H
#endif

#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Whether masked loads and stores of 4 and 8 bytes access only the lanes in the mask.
#if !HWY_MEM_OPS_MIGHT_FAULT || HWY_TARGET == HWY_AVX2
inline constexpr bool kMasksMemory = true;
#else
inline constexpr bool kMasksMemory = false;
#endif

// The first `count` lanes from memory, zero in the others.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_some(D d, const T* HWY_RESTRICT from, int64_t count) {
  if constexpr (kMasksMemory) {
    return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, from);
  } else {
    HWY_ALIGN T lanes[hn::MaxLanes(d)] = {};
    for (int64_t lane = 0; lane < count; ++lane) lanes[lane] = from[lane];
    return hn::Load(d, lanes);
  }
}

// Same as load_some(), but with the lanes of `rest` in the others.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_some_or(D d, const T* HWY_RESTRICT from, int64_t count,
                                   hn::Vec<D> rest) {
  return hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(count)), load_some(d, from, count), rest);
}

// Writes the first `count` lanes.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_some(hn::Vec<D> vector, D d, T* HWY_RESTRICT to, int64_t count) {
  if constexpr (kMasksMemory) {
    hn::BlendedStore(vector, hn::FirstN(d, static_cast<size_t>(count)), d, to);
  } else {
    HWY_ALIGN T lanes[hn::MaxLanes(d)];
    hn::Store(vector, d, lanes);
    for (int64_t lane = 0; lane < count; ++lane) to[lane] = lanes[lane];
  }
}

// Calls step(index) for each whole vector of [0, count), and last(index, rest) for the remaining
// elements.
template <class D, class Step, class Last>
HWY_INLINE void for_vectors(D d, int64_t count, const Step& step, const Last& last) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t index = 0;
  for (; index + lanes <= count; index += lanes) step(index);
  if (index < count) last(index, count - index);
}

}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
