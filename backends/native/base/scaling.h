// Range reduction and scaling of float32 by powers of two. AVX-512 has instructions for both, which
// replace sequences of other ones. Included once for each instruction set, as partial_vector.h is.
#if defined(TESSERA_NATIVE_SCALING_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_NATIVE_SCALING_H
#undef TESSERA_NATIVE_SCALING_H
#else
#define TESSERA_NATIVE_SCALING_H
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// factors[0] + factors[1] x + factors[2] x^2 + ...
template <class D, class V, size_t kCount>
HWY_INLINE V polynomial(D d, V x, const float (&factors)[kCount]) {
  V sum = hn::Set(d, factors[kCount - 1]);
  for (size_t index = kCount - 1; index-- > 0;) {
    sum = hn::MulAdd(sum, x, hn::Set(d, factors[index]));
  }
  return sum;
}

// Whether vectors of D are scaled by one instruction: the widest ones of AVX-512. (Kernels use
// narrower vectors only for a few totals.)
template <class D>
inline constexpr bool kScalesAtOnce = HWY_TARGET <= HWY_AVX3 && hn::MaxLanes(D()) == 16;

#if HWY_TARGET <= HWY_AVX3

// x * 2^n for whole n of any size. It is rounded once if it is subnormal, and infinite if it is too
// large.
template <class V>
HWY_INLINE V scaled(V x, V n) {
  return V{_mm512_scalef_ps(x.raw, n.raw)};
}

// Same as scaled(), but 0 in the lanes of `is_zero`, which lose no time on subnormal results.
template <class V, class M>
HWY_INLINE V scaled_unless(M is_zero, V x, V n) {
  return V{_mm512_maskz_scalef_ps(static_cast<__mmask16>(~is_zero.raw), x.raw, n.raw)};
}

#endif

// clamp_min: the larger one of `x` and a bound; clamp_max: the smaller one. NaN stays NaN, and a
// zero keeps its sign: comparisons with NaN are false, and of two numbers that do not differ, or of
// which one is NaN, x86's minimum and maximum give the second.
template <class D, class V>
HWY_INLINE V clamp_min(D d, V x, float low) {
  const V bound = hn::Set(d, low);
  if constexpr (kScalesAtOnce<D>) return hn::Max(bound, x);
  return hn::IfThenElse(hn::Lt(x, bound), bound, x);
}
template <class D, class V>
HWY_INLINE V clamp_max(D d, V x, float high) {
  const V bound = hn::Set(d, high);
  if constexpr (kScalesAtOnce<D>) return hn::Min(bound, x);
  return hn::IfThenElse(hn::Gt(x, bound), bound, x);
}
template <class D, class V>
HWY_INLINE V clamp(D d, V x, float low, float high) {
  return clamp_max(d, clamp_min(d, x, low), high);
}

}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
