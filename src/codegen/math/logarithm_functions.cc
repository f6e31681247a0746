// log and log1p.
//
// x = 2^k m with m in [sqrt(1/2), sqrt(2)], f = m - 1.
//   float32: log(m) = f + f^2 P(f), P of degree 8.
//   float64: log(m) = f - s (f - s^2 A(s^2)) with s = f / (2 + f), A of degree 6.
// P and A are minimax polynomials for the relative error of log(m), which is 2^-27.7 and 2^-59.4.
// They were found as those of exponential_functions.cc.
#include <limits>

#include "codegen/math/logarithm_reduction.h"
#include "codegen/math/math_functions.h"

namespace tessera::codegen {
namespace {

constexpr double kLogarithm32[] = {-0.49999988, 0.33333337,  -0.2500161, 0.20001267, -0.16607863,
                                   0.14194255,  -0.13265596, 0.12837538, -0.07487242};
constexpr double kLogarithm64[] = {0.6666666666666737, 0.3999999999939658,  0.2857142874618124,
                                   0.2222219820024048, 0.18183583201282758, 0.1531357364414776,
                                   0.14800713990072137};

constexpr double kLn2 = 0.6931471805599453;
constexpr double kSquareRootOfHalf = 0.7071067811865476;

// log(1 + f) - k ln2 for the integer `exponent` = k 2^(mantissa bits).
Term logarithm(Term f, Term exponent, double ln2) {
  if (f.is_float32()) {
    const Term log_m = fma(f * f, polynomial(f, kLogarithm32), f);
    return fma(convert(as_signed(exponent), DataType::Float32), -ln2 * 0x1p-23, log_m);
  }
  const Term s = f / (f + 2);
  const Term z = s * s;
  const Term difference = fma(z, polynomial(z, kLogarithm64), -f);
  return fma(float_of_exponent(exponent), -ln2, fma(s, difference, f));
}

// `result` if x > lowest, -infinity if x == lowest, NaN if x < lowest.
Term bounded_below(Term x, double lowest, Term result) {
  return select(lowest < x, result, select(x == lowest, -kInfinity, x.number(kNan)));
}

// The bits of sign and exponent.
Term exponent_bits(Term x, Term bits) { return bits & bits.bits(bits_of(x, -kInfinity)); }

uint64_t one_exponent(Term x) { return uint64_t{1} << mantissa_bits(x); }

// `bits` are those of x 2^-shift; base has `shift` added to the exponent of sqrt(1/2).
LogarithmReduction reduction(Term x, Term bits, Term base) {
  const Term offset = bits - base;
  const Term mantissa =
      (offset & offset.bits(one_exponent(x) - 1)) + offset.bits(bits_of(x, kSquareRootOfHalf));
  return {from_bits(mantissa) - 1, exponent_bits(x, offset)};
}

}  // namespace

LogarithmReduction reduce_normal_logarithm(Term x) {
  const Term bits = to_bits(x);
  return reduction(x, bits, bits.bits(bits_of(x, kSquareRootOfHalf)));
}

LogarithmReduction reduce_logarithm(Term x) {
  const Term is_denormal = x < (x.is_float32() ? 0x1p-126 : 0x1p-1022);
  const double scale = x.is_float32() ? 0x1p24 : 0x1p53;
  const Term bits = to_bits(select(is_denormal, x * scale, x));
  const Term base = select(is_denormal, bits.bits(bits_of(x, kSquareRootOfHalf * scale)),
                           bits.bits(bits_of(x, kSquareRootOfHalf)));
  return reduction(x, bits, base);
}

Term float_of_exponent(Term exponent) {
  // Conversions of 64-bit integers are slow on many processors. Adding a small integer to the bits
  // of a large float converts it too.
  const double magic = 0x1.8p52;
  const Term k = as_unsigned(as_signed(exponent) >> 52);
  return from_bits(k + k.bits(std::bit_cast<uint64_t>(magic))) - magic;
}

InstructionId log(ExpressionBuilder& builder, InstructionId id) {
  const Term x = {&builder, id};
  const LogarithmReduction reduced = reduce_logarithm(x);
  const Term result = logarithm(reduced.f, reduced.exponent, -kLn2);
  // Infinity and NaN are their own logarithms.
  return bounded_below(x, 0, select(x < kInfinity, result, x)).id;
}

InstructionId log1p(ExpressionBuilder& builder, InstructionId id) {
  const Term x = {&builder, id};
  // 1 + x = 2^k m. `exponent` is -k times 2^(mantissa bits); the sum before `&` rounds up, because
  // the sign is changed.
  const Term rounded = to_bits(x + 1);
  const uint64_t upper = bits_of(x, kSquareRootOfHalf) + one_exponent(x) - 1;
  const Term exponent = exponent_bits(x, rounded.bits(upper) - rounded);
  // f = 2^-k x - (1 - 2^-k) does not contain the error of 1 + x. 2^-k itself may be denormal, so it
  // is multiplied by 2^64. With this order of operations, f is -0 if x is -0, and so is the result.
  const Term large = from_bits(rounded.bits(bits_of(x, 0x1p64)) + exponent);
  const Term f = from_bits(to_bits(x) + exponent) - fma(large, -0x1p-64, 1);
  const Term result = logarithm(f, exponent, kLn2);
  return bounded_below(x, -1, select(x < kInfinity, result, x)).id;
}

}  // namespace tessera::codegen
