// exp, expm1 and tanh.
//
// x = n ln 2 + r, and exp(r) = 1 + r + r^2 q(r). q is a minimax polynomial: it was found by the
// algorithm of Remez for the weight r^2 / (exp(r) - 1) on [-0.3468, 0.3468] and rounded to
// coefficients of the type by reduction of a lattice basis (Brisebarre and Chevillard, Efficient
// polynomial L-infinity approximations). Its relative error in exp(r) - 1 is 2^-26.0 (float32) and
// 2^-61.5 (float64).
#include "codegen/math/exponential_reduction.h"

#include <vector>

#include "codegen/math/math_functions.h"

namespace tessera::codegen {
namespace {

constexpr double kExponential32[] = {0.49999997, 0.16666539, 0.041667517, 0.008367159,
                                     0.0013864359};
constexpr double kExponential64[] = {0.5,
                                     0.16666666666666677,
                                     0.0416666666666666,
                                     0.008333333333321417,
                                     0.001388888888892831,
                                     0.00019841269886685672,
                                     2.480158722781488e-5,
                                     2.75572436196778e-6,
                                     2.75573614423871e-7,
                                     2.510925273946866e-8,
                                     2.0886851990722908e-9};

// 2^r = 1 + r E(r) for |r| <= 1/2; the relative error is 2^-28.7.
constexpr double kPowerOfTwo32[] = {0.6931472058467568,    0.24022648331548335,
                                    0.0555032803628287,    0.009618384467620542,
                                    0.0013400349496772068, 0.00015369114892605477};

// The logarithm of 2 in two parts.
constexpr double kLn2High32 = 0.6931472;
constexpr double kLn2Low32 = -1.9046542e-9;
constexpr double kLn2High64 = 0.6931471805599453;
constexpr double kLn2Low64 = 2.3190468138462996e-17;

std::span<const double> coefficients(Term x) {
  if (x.is_float32()) return kExponential32;
  return kExponential64;
}

double ln2_high(Term x) { return x.is_float32() ? kLn2High32 : kLn2High64; }
double ln2_low(Term x) { return x.is_float32() ? kLn2Low32 : kLn2Low64; }

// n is x times `factor`, rounded to an integer.
ExponentialReduction reduce(Term x, double factor, int bias) {
  // Floats of this size are integers, and their last bits are those of the integer.
  const double magic = (x.is_float32() ? 0x1.8p23 : 0x1.8p52) + bias;
  const Term shifted = factor == 1 ? x + magic : fma(x, factor, magic);
  return {to_bits(shifted), shifted - magic};
}

}  // namespace

ExponentialReduction reduce_exponential(Term x, int bias) { return reduce(x, kLog2E, bias); }
ExponentialReduction reduce_decay(Term x, int bias) { return reduce(x, -kLog2E, bias); }
ExponentialReduction reduce_power_of_two(Term x, int bias) { return reduce(x, 1, bias); }

Term exponential_remainder(Term x, Term exponent) {
  return fma(exponent, -ln2_low(x), fma(exponent, -ln2_high(x), x));
}

Term decay_remainder(Term x, Term exponent) {
  return fma(exponent, ln2_low(x), fma(exponent, ln2_high(x), x));
}

Term decay_remainder(Term x, Term exponent, Term rest) {
  return fma(exponent, ln2_high(x), x) + fma(exponent, ln2_low(x), rest);
}

Term expm1_of_remainder(Term r) { return fma(r * r, polynomial(r, coefficients(r)), r); }

Term decay_of_remainder(Term r) {
  const std::span<const double> growing = coefficients(r);
  std::vector<double> alternating(growing.begin(), growing.end());
  for (size_t index = 0; index < alternating.size(); index += 2) {
    alternating[index] = -alternating[index];
  }
  return fma(r * r, polynomial(r, alternating), r);
}

Term power_of_two(Term exponent_bits) {
  return from_bits(exponent_bits << (exponent_bits.type() == DataType::UInt32 ? 23 : 52));
}

Term scaled(Term y, Term z, Term exponent_bits) {
  // 2^n may be no normal number, but each half of n gives one. The second product is exact if it is
  // normal.
  const Term half = exponent_bits >> 1;
  return fma(y, z, z) * power_of_two(half) * power_of_two(exponent_bits - half);
}

Term scaled(Term y, Term exponent_bits) {
  const Term half = exponent_bits >> 1;
  const Term factor = power_of_two(half);
  return fma(y, factor, factor) * power_of_two(exponent_bits - half);
}

Term float32_power_of_two(Term r, Term exponent_bits) {
  return fma(r, polynomial(r, kPowerOfTwo32), 1) * power_of_two(exponent_bits);
}

InstructionId exp(ExpressionBuilder& builder, InstructionId id) {
  const Term input = {&builder, id};
  // Beyond these limits the result is 0 or infinite.
  const Term x =
      input.is_float32() ? at_most(at_least(input, -104), 89) : at_most(at_least(input, -746), 710);
  const ExponentialReduction reduction = reduce_exponential(x, 2 * exponent_bias(x));
  const Term r = exponential_remainder(x, reduction.exponent);
  return scaled(expm1_of_remainder(r), reduction.exponent_bits).id;
}

InstructionId expm1(ExpressionBuilder& builder, InstructionId id) {
  const Term input = {&builder, id};
  // Beyond these limits the result is -1 or infinite.
  const Term x =
      input.is_float32() ? at_most(at_least(input, -18), 89) : at_most(at_least(input, -38), 710);
  // exp(x) - 1 = 2 (2^(n-1) (exp(r) - 1) + 2^(n-1) - 1/2): 2^n may be infinite.
  const ExponentialReduction reduction = reduce_exponential(x, exponent_bias(x) - 1);
  const Term r = exponential_remainder(x, reduction.exponent);
  const Term factor = power_of_two(reduction.exponent_bits);
  const Term half = fma(expm1_of_remainder(r), factor, factor - 0.5);
  // Half of a denormal number is rounded, and -0 would become 0.
  const double tiny = input.is_float32() ? 0x1p-26 : 0x1p-55;
  return select(absolute(input) < tiny, input, half * 2).id;
}

InstructionId tanh(ExpressionBuilder& builder, InstructionId id) {
  const Term input = {&builder, id};
  // tanh(x) = y / (y + 1) with y = (exp(2x) - 1) / 2, for x >= 0; 1 beyond the limit.
  const Term x = at_most(absolute(input) * 2, input.is_float32() ? 20 : 40);
  const ExponentialReduction reduction = reduce_exponential(x, exponent_bias(x) - 1);
  // In float32, the lower part of ln 2 makes no difference here.
  const Term r = x.is_float32() ? fma(reduction.exponent, -kLn2High32, x)
                                : exponential_remainder(x, reduction.exponent);
  const Term factor = power_of_two(reduction.exponent_bits);
  const Term y = fma(expm1_of_remainder(r), factor, factor - 0.5);
  // For small y, y - y (y / (y + 1)) is more accurate than y / (y + 1).
  const Term quotient = y / (y + 1);
  return with_sign_of(input, select(y < 1, fma(-y, quotient, y), quotient)).id;
}

}  // namespace tessera::codegen
