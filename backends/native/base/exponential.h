// exp() of vectors; NaN stays NaN. Included once for each instruction set, as partial_vector.h is.
#if defined(TESSERA_NATIVE_EXPONENTIAL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_NATIVE_EXPONENTIAL_H
#undef TESSERA_NATIVE_EXPONENTIAL_H
#else
#define TESSERA_NATIVE_EXPONENTIAL_H
#endif

#include <cstdint>

#include "base/scaling.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// exp(sign * x) = 2^(n + rest) with n whole and |rest| <= 0.5, for |x| < 2^20. Only for targets
// that multiply and add with one rounding: it leaves all digits to `rest`.
template <class V>
struct BinaryExponent {
  V n;
  V rest;
};
template <class D, class V>
HWY_INLINE BinaryExponent<V> binary_exponent_of(D d, V x, float sign = 1) {
  // log2(e) in two parts.
  const V high = hn::Set(d, sign * 1.44269502F);
  const V low = hn::Set(d, sign * 1.92596299e-8F);
  const V n = hn::Round(hn::Mul(x, high));
  return {n, hn::MulAdd(x, low, hn::MulSub(x, high, n))};
}

// (2^x - 1) / x for |x| <= 0.5: a minimax fit of our own, with which 2^x is off by 2^-28 at most.
template <class D, class V>
HWY_INLINE V power_slope(D d, V x) {
  constexpr float kFactors[] = {0.693147182F,   0.240226477F,   0.0555035993F,
                                0.00961850583F, 0.00133908063F, 0.000153264715F};
  return polynomial(d, x, kFactors);
}

template <class D, class V>
HWY_INLINE V power_of_two_of(D d, V x) {
  return hn::MulAdd(power_slope(d, x), x, hn::Set(d, 1.0F));
}

// exp(x) for x <= 0, to 2 ulp; a result that would be subnormal is 0. Without AVX-512: exp(x) = 2^n
// * exp(r) with r in [-ln(2) / 2, ln(2) / 2]; the polynomial is that of the Cephes library for this
// interval (expf.c).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exponential(D d, V x) {
  // Comparisons with NaN are false, so it stays.
  const auto is_zero = hn::Lt(x, hn::Set(d, -87.0F));
  if constexpr (kScalesAtOnce<D>) {
    const auto exponent = binary_exponent_of(d, x);
    return scaled_unless(is_zero, power_of_two_of(d, exponent.rest), exponent.n);
  } else {
    const hn::RebindToSigned<D> integers;
    // A float of this size has no digits behind the point, and its lowest bits are those of n +
    // 127, the exponent bits of 2^n. That is cheaper than rounding and converting.
    const V large = hn::Set(d, 0x1.8p23F + 127);
    const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504088896341F), large);
    const V whole = hn::Sub(shifted, large);
    V rest = hn::NegMulAdd(whole, hn::Set(d, 0.693359375F), x);
    rest = hn::NegMulAdd(whole, hn::Set(d, -2.12194440e-4F), rest);
    V sum = hn::Set(d, 1.9875691500e-4F);
    sum = hn::MulAdd(sum, rest, hn::Set(d, 1.3981999507e-3F));
    sum = hn::MulAdd(sum, rest, hn::Set(d, 8.3334519073e-3F));
    sum = hn::MulAdd(sum, rest, hn::Set(d, 4.1665795894e-2F));
    sum = hn::MulAdd(sum, rest, hn::Set(d, 1.6666665459e-1F));
    sum = hn::MulAdd(sum, rest, hn::Set(d, 5.0000001201e-1F));
    sum = hn::MulAdd(sum, hn::Mul(rest, rest), hn::Add(rest, hn::Set(d, 1.0F)));
    const auto power = hn::ShiftLeft<23>(hn::BitCast(integers, shifted));
    return hn::IfThenZeroElse(is_zero, hn::Mul(sum, hn::BitCast(d, power)));
  }
}

}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
