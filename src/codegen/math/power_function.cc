// pow: |x|^y = 2^(y log2 |x|).
//
// float32 computes in float64: log2(1 + f) = f P(f) with a minimax polynomial of degree 11 for the
// relative error of log2, which is 2^-32.9. The error of 2^r adds 2^-28.7.
//
// float64 computes the logarithm and its product with y in two floats each. For s = f / (2 + f),
// log2(1 + f) = s (C0 + s^2 (C1 + s^2 T(s^2))) with C0 = 2 / ln 2, C1 = C0 / 3 and T of degree 6;
// 2^r = 1 + r E(r) with E of degree 10. The relative errors are 2^-66.1 and 2^-57.3. The sums of
// two floats follow Dekker, A floating-point technique for extending the available precision.
//
// The polynomials were found as those of exponential_functions.cc.
#include <limits>

#include "codegen/math/exponential_reduction.h"
#include "codegen/math/logarithm_reduction.h"
#include "codegen/math/math_functions.h"

namespace tessera::codegen {
namespace {

constexpr double kBinaryLogarithm32[] = {
    1.4426950409605643, -0.7213475249372594,  0.480898310016325,   -0.36067283749760837,
    0.2885415281035895, -0.24050319900610193, 0.20607011186346533, -0.17904334098098074,
    0.1593231522519931, -0.15728548614247861, 0.1534509521008981,  -0.08423246183174864};
constexpr double kBinaryLogarithm64[] = {
    0.5770780163556196,  0.4121985830912601, 0.32059890238177136, 0.26230769244126173,
    0.22198437193132284, 0.1912468908229745, 0.19045912805900664};
constexpr double kPower64[] = {0.6931471805599453,   0.24022650695910133,   0.055504108664822235,
                               0.00961812910759338,  0.0013333558146388803, 0.00015403530458019284,
                               1.525273379755329e-5, 1.3215434833373534e-6, 1.0178089937608871e-7,
                               7.073860664238159e-9, 4.44951492683595e-10};

// An unevaluated sum; `low` is small beside `high`.
struct Sum {
  Term high;
  Term low;
};

// large + small for |large| >= |small| or large = 0.
Sum sum(Term large, Term small) {
  const Term high = large + small;
  return {high, small - (high - large)};
}

Sum product(Sum a, Sum b) {
  const Term high = a.high * b.high;
  const Term error = fma(a.high, b.high, -high);
  return {high, fma(a.high, b.low, fma(a.low, b.high, error))};
}

// A constant in two parts, plus `small`.
Sum plus_constant(double high, double low, Term small) {
  const Sum result = sum(small.number(high), small);
  return {result.high, result.low + low};
}

Sum plus_constant(double high, double low, Sum small) {
  const Sum result = plus_constant(high, low, small.high);
  return {result.high, result.low + small.low};
}

// f / (2 + f)
Sum quotient(Term f) {
  const Sum divisor = sum(f.number(2), f);
  const Term inverse = 1 / divisor.high;
  const Term high = f * inverse;
  const Term rest = fma(-high, divisor.low, fma(-high, divisor.high, f));
  return {high, rest * inverse};
}

// log2(a) of a float64 a > 0; -infinity for 0, a itself for infinity and NaN.
Sum logarithm_in_two_parts(Term a) {
  const LogarithmReduction reduced = reduce_logarithm(a);
  const Sum s = quotient(reduced.f);
  const Sum square = product(s, s);
  const Term tail = square.high * polynomial(square.high, kBinaryLogarithm64);
  const Sum inner = plus_constant(0.9617966939259756, 5.0577616648125907e-17, tail);
  const Sum outer =
      plus_constant(2.8853900817779268, 4.0710547481862066e-17, product(square, inner));
  const Sum log_m = product(s, outer);
  const Sum result = sum(float_of_exponent(reduced.exponent), log_m.high);
  const Term high = select(a < kInfinity, result.high, a);
  return {select(a == 0, -kInfinity, high), result.low + log_m.low};
}

// 2^(y log2 a)
Term power64(Term a, Term y, Term is_one) {
  const Sum logarithm = logarithm_in_two_parts(a);
  const Term product = y * logarithm.high;
  const Term error = fma(y, logarithm.low, fma(y, logarithm.high, -product));
  // Beyond the limits the result is 0 or infinite, and the error is not finite.
  const Term exponent = at_most(at_least(select(is_one, 0, product), -1100), 1100);
  const Term is_usual = (-1100 < exponent) & (exponent < 1100) & ~is_one;
  const ExponentialReduction reduction = reduce_power_of_two(exponent, 2 * exponent_bias(a));
  const Term r = (exponent - reduction.exponent) + select(is_usual, error, 0);
  return scaled(r * polynomial(r, kPower64), reduction.exponent_bits);
}

Term power32(Term narrow_a, Term narrow_y, Term is_one) {
  const Term a = convert(narrow_a, DataType::Float64);
  const Term y = convert(narrow_y, DataType::Float64);
  // No float32 is denormal in float64.
  const LogarithmReduction reduced = reduce_normal_logarithm(a);
  const Term usual = fma(reduced.f, polynomial(reduced.f, kBinaryLogarithm32),
                         float_of_exponent(reduced.exponent));
  const Term logarithm = select(a == 0, -kInfinity, select(a < kInfinity, usual, a));
  // Beyond the limits the result is 0 or infinite in float32.
  const Term exponent = at_most(at_least(select(is_one, 0, y * logarithm), -160), 160);
  const ExponentialReduction reduction = reduce_power_of_two(exponent, exponent_bias(a));
  const Term r = exponent - reduction.exponent;
  return convert(float32_power_of_two(r, reduction.exponent_bits), DataType::Float32);
}

}  // namespace

InstructionId pow(ExpressionBuilder& builder, InstructionId x_id, InstructionId y_id) {
  const Term x = {&builder, x_id};
  const Term y = {&builder, y_id};
  const Term a = absolute(x);
  const Term is_one = (a == 1) | (y == 0);
  const Term power = x.is_float32() ? power32(a, y, is_one) : power64(a, y, is_one);

  // Infinite y are even.
  const Term half = y * 0.5;
  const Term is_integer = floor(y) == y;
  const Term is_odd = is_integer & ~(floor(half) == half);
  const Term sign = select(is_odd, sign_bit(x), to_bits(x.number(0)));
  const Term signed_power = from_bits(to_bits(power) | sign);
  const Term is_undefined = (x < 0) & (-kInfinity < x) & ~is_integer;
  return select(is_undefined, kNan, signed_power).id;
}

}  // namespace tessera::codegen
