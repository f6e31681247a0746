// Vector functions of float32 that several kernels use, accurate to a few units in the last place.
// NaN stays NaN everywhere. Polynomials and rational functions are minimax fits of our own for the
// intervals given beside them. Compiled once for each instruction set: files that foreach_target.h
// includes include this one after highway.h.
#if defined(TESSERA_NATIVE_FLOAT_FUNCTIONS_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_NATIVE_FLOAT_FUNCTIONS_H
#undef TESSERA_NATIVE_FLOAT_FUNCTIONS_H
#else
#define TESSERA_NATIVE_FLOAT_FUNCTIONS_H
#endif

#include <cstdint>

#include "base/activation.h"
#include "base/exponential.h"
#include "base/scaling.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using IntegersOf = hn::RebindToSigned<D>;

// 2^n for n in [-126, 128], where 128 gives infinity.
template <class D, class I>
HWY_INLINE hn::Vec<D> power_of_two(D d, I n) {
  const IntegersOf<D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, int32_t{127}))));
}

// ln(2) in two parts. The first has so few digits that its multiples are exact.
constexpr float kLog2High = 0.693359375F;
constexpr float kLog2Low = -2.12194440e-4F;

// Splits x = n * ln(2) + rest with |rest| <= ln(2) / 2, for |x| < 2^21. Sets `n` and returns
// exp(rest) - 1.
template <class D, class V, class I = hn::Vec<IntegersOf<D>>>
HWY_INLINE V exp_of_rest(D d, V x, I& n) {
  constexpr float kFactors[] = {0.49999997F, 0.16666542F, 0.0416672044F, 0.00836669188F,
                                0.00138824864F};
  // A float of this size has no fractional bits, and its lowest bits are those of n. Adding it is
  // cheaper than rounding and converting.
  const V large = hn::Set(d, 0x1.8p23F);
  const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504088896341F), large);
  const IntegersOf<D> di;
  n = hn::Sub(hn::BitCast(di, shifted), hn::BitCast(di, large));
  const V whole = hn::Sub(shifted, large);
  V rest = hn::NegMulAdd(whole, hn::Set(d, kLog2High), x);
  rest = hn::NegMulAdd(whole, hn::Set(d, kLog2Low), rest);
  return hn::MulAdd(hn::Mul(rest, rest), polynomial(d, rest, kFactors), rest);
}

template <class D, class V>
HWY_INLINE V exp_of(D d, V given) {
  const V x = clamp(d, given, -104.0F, 89.0F);
  if constexpr (kScalesAtOnce<D>) {
    const auto exponent = binary_exponent_of(d, x);
    return scaled(power_of_two_of(d, exponent.rest), exponent.n);
  }
  const IntegersOf<D> di;
  auto n = hn::Zero(di);
  const V rest = exp_of_rest(d, x, n);
  // In two steps: 2^n itself may overflow or underflow although the result does not.
  const auto half = hn::ShiftRight<1>(n);
  const V sum = hn::Add(hn::Set(d, 1.0F), rest);
  return hn::Mul(hn::Mul(sum, power_of_two(d, half)), power_of_two(d, hn::Sub(n, half)));
}

// exp(x) for x <= 0; a result that would be subnormal is 0.
template <class D, class V>
HWY_INLINE V exp_of_negative(D d, V x) {
  if constexpr (kScalesAtOnce<D>) return exponential(d, x);
  const IntegersOf<D> di;
  auto n = hn::Zero(di);
  const V rest = exp_of_rest(d, clamp_min(d, x, -87.0F), n);
  const V scale = power_of_two(d, n);
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.0F)), hn::MulAdd(scale, rest, scale));
}

// exp(x) - 1.
template <class D, class V>
HWY_INLINE V expm1_of(D d, V given) {
  const V x = clamp(d, given, -18.0F, 89.0F);
  V scale = hn::Set(d, 0.5F);
  V rest = x;
  // 2^(n - 1), because 2^128 overflows although the result does not.
  if constexpr (kScalesAtOnce<D>) {
    const auto exponent = binary_exponent_of(d, x);
    rest = hn::Mul(power_slope(d, exponent.rest), exponent.rest);
    scale = scaled(scale, exponent.n);
  } else {
    const IntegersOf<D> di;
    auto n = hn::Zero(di);
    rest = exp_of_rest(d, x, n);
    scale = power_of_two(d, hn::Sub(n, hn::Set(di, int32_t{1})));
  }
  const V half = hn::MulAdd(scale, rest, hn::Sub(scale, hn::Set(d, 0.5F)));
  return hn::Add(half, half);
}

// log(1 + f) - f for 1 + f between 1 / sqrt(2) and sqrt(2), plus `small`.
template <class D, class V>
HWY_INLINE V log_less_linear(D d, V f, V small) {
  constexpr float kFactors[] = {0.333333313F, -0.250008225F, 0.200012267F, -0.166233569F,
                                0.142017618F, -0.131601945F, 0.127615497F, -0.0763442963F};
  const V square = hn::Mul(f, f);
  const V cubic = hn::MulAdd(hn::Mul(square, f), polynomial(d, f, kFactors), small);
  return hn::NegMulAdd(hn::Set(d, 0.5F), square, cubic);
}

template <class D, class V>
HWY_INLINE V log_of(D d, V given) {
  constexpr float kSmallestNormal = 1.17549435e-38F;
  constexpr int32_t kBitsOfRootOfHalf = 0x3F3504F3;
  const IntegersOf<D> di;
  const auto is_subnormal = hn::Lt(given, hn::Set(d, kSmallestNormal));
  const V x = hn::IfThenElse(is_subnormal, hn::Mul(given, hn::Set(d, 0x1p23F)), given);
  const auto bits = hn::BitCast(di, x);
  const auto n = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, kBitsOfRootOfHalf)));
  const V fraction = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(n)));
  const V f = hn::Sub(fraction, hn::Set(d, 1.0F));
  const V exponent =
      hn::Sub(hn::ConvertTo(d, n), hn::IfThenElseZero(is_subnormal, hn::Set(d, 23.0F)));
  const V small = log_less_linear(d, f, hn::Mul(exponent, hn::Set(d, kLog2Low)));
  V result = hn::MulAdd(exponent, hn::Set(d, kLog2High), hn::Add(f, small));
  const V infinity = hn::Inf(d);
  result = hn::IfThenElse(hn::Eq(given, infinity), infinity, result);
  result = hn::IfThenElse(hn::Eq(given, hn::Zero(d)), hn::Neg(infinity), result);
  // NaN and negative numbers give NaN.
  return hn::IfThenElse(hn::Ge(given, hn::Zero(d)), result, hn::NaN(d));
}

// log(1 + x) for x in [0, 1].
template <class D, class V>
HWY_INLINE V log1p_of_fraction(D d, V x) {
  // If 1 + x is more than sqrt(2), it is 2 (1 + f) with f exact.
  const auto is_large = hn::Gt(x, hn::Set(d, 0.414213562F));
  const V half = hn::MulSub(x, hn::Set(d, 0.5F), hn::Set(d, 0.5F));
  const V f = hn::IfThenElse(is_large, half, x);
  const V small = log_less_linear(d, f, hn::IfThenElseZero(is_large, hn::Set(d, kLog2Low)));
  return hn::Add(hn::IfThenElseZero(is_large, hn::Set(d, kLog2High)), hn::Add(f, small));
}

// Beyond 9, float32 cannot tell the result from 1.
template <class D, class V>
HWY_INLINE V tanh_of(D d, V given) {
  constexpr float kUpper[] = {1.0F, 0.13380374F, 0.00349481404F, 2.05963188e-05F, 1.33369058e-08F};
  constexpr float kLower[] = {1.0F, 0.46713689F, 0.0258740373F, 0.000328436785F, 7.7693079e-07F};
  const V x = clamp(d, given, -9.0F, 9.0F);
  const V square = hn::Mul(x, x);
  const V upper = hn::Mul(x, polynomial(d, square, kUpper));
  return clamp(d, hn::Div(upper, polynomial(d, square, kLower)), -1.0F, 1.0F);
}

// Beyond 3.93, float32 cannot tell the result from 1.
template <class D, class V>
HWY_INLINE V erf_of(D d, V given) {
  constexpr float kUpper[] = {1.12837911F,    0.191550225F,    0.0528754406F,
                              0.00380815938F, 0.000284687907F, 2.02591173e-06F};
  constexpr float kLower[] = {1.0F,          0.503089666F,   0.114559591F,
                              0.0150550846F, 0.00117072568F, 3.78318509e-05F};
  const V x = clamp(d, given, -3.93F, 3.93F);
  const V square = hn::Mul(x, x);
  const V upper = hn::Mul(x, polynomial(d, square, kUpper));
  return clamp(d, hn::Div(upper, polynomial(d, square, kLower)), -1.0F, 1.0F);
}

// 1 / (1 + exp(-x)). Below -87 the result would be subnormal and is 0, which is off by less than
// 1.2e-38.
template <class D, class V>
HWY_INLINE V sigmoid_of(D d, V x) {
  const V one = hn::Set(d, 1.0F);
  if constexpr (kScalesAtOnce<D>) {
    // From 87 on, exp(-x) would be subnormal, and the sum is 1. Below -87, NaN and infinities in
    // between do not matter.
    const auto exponent = binary_exponent_of(d, clamp_max(d, x, 87.0F), -1);
    const V lower = hn::Add(one, scaled(power_of_two_of(d, exponent.rest), exponent.n));
    // Division of wide vectors is slow on most processors. AVX-512 approximates 1 / lower so well
    // that one step of Newton's method makes all digits correct.
    const V guess = hn::ApproximateReciprocal(lower);
    const V result = hn::MulAdd(guess, hn::NegMulAdd(lower, guess, one), guess);
    return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.0F)), result);
  }
  // From exp(-|x|), which cannot overflow.
  const V power = exp_of_negative(d, hn::Neg(hn::Abs(x)));
  const V upper = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), power, one);
  return hn::Div(upper, hn::Add(one, power));
}

// For x < kGeluFar: x erfc(-x / sqrt(2)) / 2 = -exp(-x^2 / 2) P(1 / (1 - 0.3 x)), and NaN for
// -infinity. There, 1 + erf() would lose its digits to cancellation.
constexpr float kGeluFar = -0.87F;

template <class D, class V>
HWY_INLINE V gelu_far(D d, V given) {
  constexpr float kFactors[] = {0.398940325F,   3.93379232e-05F, -0.0361431129F, -0.0722404644F,
                                -0.0850337818F, -0.180445448F,   0.143141359F,   -0.451698929F,
                                0.383557856F,   -0.100133933F};
  // Below, the result is 0.
  const V x = clamp_min(d, given, -20.0F);
  const V square = hn::Mul(x, x);
  const V rounded = exp_of_negative(d, hn::Mul(square, hn::Set(d, -0.5F)));
  // The exponential multiplies the rounding error of its argument.
  const V lost = hn::MulSub(x, x, square);
  const V power = hn::NegMulAdd(hn::Mul(rounded, hn::Set(d, 0.5F)), lost, rounded);
  const V one = hn::Set(d, 1.0F);
  const V place = hn::Div(one, hn::NegMulAdd(hn::Set(d, 0.3F), x, one));
  const V factor = polynomial(d, place, kFactors);
  const V result = hn::Neg(hn::Mul(power, factor));
  return hn::IfThenElse(hn::Eq(given, hn::Neg(hn::Inf(d))), hn::NaN(d), result);
}

template <class D, class V>
HWY_INLINE V gelu_of(D d, V x) {
  const V half = hn::Mul(x, hn::Set(d, 0.5F));
  const V erf = erf_of(d, hn::Mul(x, hn::Set(d, 0.707106781186547524F)));
  // The sum loses the sign of a zero.
  const V result = hn::CopySign(hn::MulAdd(half, erf, half), x);
  const auto is_far = hn::Lt(x, hn::Set(d, kGeluFar));
  if (hn::AllFalse(d, is_far)) return result;
  return hn::IfThenElse(is_far, gelu_far(d, x), result);
}

// sigmoid(x + lost), if `x` is a rounded number and `lost` its rounding error, which the
// exponential multiplies by x.
template <class D, class V>
HWY_INLINE V sigmoid_of_sum(D d, V x, V lost) {
  const V rounded = sigmoid_of(d, x);
  const V slope = hn::NegMulAdd(rounded, rounded, rounded);
  return hn::MulAdd(slope, lost, rounded);
}

// Below this argument, the rounding errors of the argument of sigmoid matter.
constexpr float kGeluTanhFar = -3.0F;

// x sigmoid(2 sqrt(2 / pi) x (1 + 0.044715 x^2)) for x < kGeluTanhFar.
template <class D, class V>
HWY_INLINE V gelu_tanh_far(D d, V given) {
  constexpr double kCube = 0.044715;
  constexpr double kScale = 1.59576912160573071;
  const V cube = hn::Set(d, static_cast<float>(kCube));
  const V cube_rest = hn::Set(d, static_cast<float>(kCube - double{static_cast<float>(kCube)}));
  const V scale = hn::Set(d, static_cast<float>(kScale));
  const V scale_rest = hn::Set(d, static_cast<float>(kScale - double{static_cast<float>(kScale)}));
  // Below, the result is 0.
  const V x = clamp_min(d, given, -12.0F);
  const V one = hn::Set(d, 1.0F);
  // Each number is followed by the rest that its rounding lost.
  const V square = hn::Mul(x, x);
  const V square_rest = hn::MulSub(x, x, square);
  const V sum = hn::MulAdd(cube, square, one);
  const V sum_rest =
      hn::MulAdd(cube, square_rest,
                 hn::MulAdd(cube_rest, square, hn::MulSub(cube, square, hn::Sub(sum, one))));
  const V line = hn::Mul(scale, x);
  const V line_rest = hn::MulAdd(scale_rest, x, hn::MulSub(scale, x, line));
  const V product = hn::Mul(line, sum);
  const V product_rest =
      hn::MulAdd(line, sum_rest, hn::MulAdd(line_rest, sum, hn::MulSub(line, sum, product)));
  return hn::Mul(given, sigmoid_of_sum(d, product, product_rest));
}

// (1 + tanh(u)) / 2 = sigmoid(2 u), which does not cancel; 2 sqrt(2 / pi) = 1.5957...
template <class D, class V>
HWY_INLINE V gelu_tanh_of(D d, V x) {
  const V cubic = hn::MulAdd(hn::Mul(hn::Mul(x, x), x), hn::Set(d, 0.044715F), x);
  const V result = hn::Mul(x, sigmoid_of(d, hn::Mul(hn::Set(d, 1.59576912160573F), cubic)));
  const auto is_far = hn::Lt(x, hn::Set(d, kGeluTanhFar));
  if (hn::AllFalse(d, is_far)) return result;
  return hn::IfThenElse(is_far, gelu_tanh_far(d, x), result);
}

// factor exp(exponent) for an exponent below kSwishFar: the power alone may be subnormal, or 0,
// although the product is not.
template <class D, class V>
HWY_INLINE V times_small_power(D d, V factor, V exponent) {
  const V root = exp_of(d, hn::Mul(exponent, hn::Set(d, 0.5F)));
  return hn::Mul(hn::Mul(factor, root), root);
}

// Below this argument, sigmoid is the exponential.
constexpr float kSwishFar = -80.0F;

// x sigmoid(alpha x); NaN for -infinity if alpha is positive.
template <class D, class V>
HWY_INLINE V swish_of(D d, V x, float alpha) {
  const V factor = hn::Set(d, alpha);
  const V product = hn::Mul(factor, x);
  V result = hn::Zero(d);
  V lost = hn::Zero(d);
  if (alpha == 1) {
    result = hn::Mul(x, sigmoid_of(d, x));
  } else {
    // For larger products, sigmoid is 0 or 1, and an infinite product has no rest.
    const auto is_near = hn::Lt(hn::Abs(product), hn::Set(d, 200.0F));
    lost = hn::IfThenElseZero(is_near, hn::MulSub(factor, x, product));
    result = hn::Mul(x, sigmoid_of_sum(d, product, lost));
  }
  const auto is_far = hn::Lt(product, hn::Set(d, kSwishFar));
  if (hn::AllFalse(d, is_far)) return result;
  const V far = times_small_power(d, hn::MulAdd(x, lost, x), product);
  return hn::IfThenElse(is_far, far, result);
}

// x / 6 + 1 / 2, clipped to [0, 1]. Near -3, where it is 0, the sum is exact.
template <class D, class V>
HWY_INLINE V hard_gate(D d, V x) {
  return clamp(d, hn::Mul(hn::Add(x, hn::Set(d, 3.0F)), hn::Set(d, 1.0F / 6)), 0.0F, 1.0F);
}

// SiLU or HardSwish.
template <class D, class V>
HWY_INLINE V gated(D d, const Activation& activation, V x) {
  if (activation.kind == ActivationKind::Silu) return swish_of(d, x, 1);
  return hn::Mul(x, hard_gate(d, x));
}

// The largest angle that the parts of pi / 2 below reduce exactly: a multiple has 14 bits, a part
// 10.
constexpr float kMaxAngle = 25000.0F;

// The angle `x` of angle_of(): sine and cosine of x - quarters * pi / 2.
template <class D, class V>
struct Angle {
  V sine;
  V cosine;
  hn::Vec<IntegersOf<D>> quarters;
};

template <class D, class V>
HWY_INLINE Angle<D, V> angle_of(D d, V x) {
  constexpr float kSine[] = {-0.166666538F, 0.00833213702F, -0.000195120272F};
  constexpr float kCosine[] = {0.0416666456F, -0.00138872839F, 2.4429437e-05F};
  constexpr float kParts[] = {0x1.92p0F, 0x1.fbp-12F, 0x1.51p-22F, 0x1.0b4612p-34F};
  const IntegersOf<D> di;
  const V whole = hn::Round(hn::Mul(x, hn::Set(d, 0.636619772367581343F)));
  V rest = x;
  for (const float part : kParts) rest = hn::NegMulAdd(whole, hn::Set(d, part), rest);
  const V square = hn::Mul(rest, rest);
  const V sine = hn::MulAdd(hn::Mul(square, rest), polynomial(d, square, kSine), rest);
  const V start = hn::NegMulAdd(hn::Set(d, 0.5F), square, hn::Set(d, 1.0F));
  const V cosine = hn::MulAdd(hn::Mul(square, square), polynomial(d, square, kCosine), start);
  // The sums lose the sign of a zero.
  return {hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, sine), cosine, hn::ConvertTo(di, whole)};
}

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
