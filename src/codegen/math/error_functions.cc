// erf and erfc.
//
// erf(a) = 1 - exp(-y) for a >= 0 with y = -log(erfc(a)) = a (2 / sqrt(pi) + a Q(a)). Beyond the
// limits 3.93 (float32) and 5.93 (float64), erf is 1. Q is a minimax polynomial of degree 7 (23)
// for the relative error of erf, which is 2^-27.7 (2^-57.3).
//
// erfc(a) = exp(-a^2) R(t) for a >= 0 with t = (a - K) / (a + K), and 2 - erfc(a) for -a. Beyond
// the limits 10.06 and 27.25, erfc is 0. K is 2.75 (3.5). R is a minimax polynomial of degree 9, or
// (1 - t) times one of degree 22 in float64, where R is small beside its coefficients for large t.
// Its relative error is 2^-27.0 (2^-56.2).
//
// The polynomials were found as those of exponential_functions.cc.
#include "codegen/math/exponential_reduction.h"
#include "codegen/math/math_functions.h"

namespace tessera::codegen {
namespace {

constexpr double kError32[] = {0.63661957,   0.10277609,    -0.019146482,  -0.00017269727,
                               0.0016794039, -0.0006396311, 0.00011954866, -9.469651e-6};
constexpr double kError64[] = {
    0.6366197723675829,      0.10277260330181145,    -0.019128447005408573,  -0.0002091946921883538,
    0.001696206374266747,    -0.0005901255301086875, 2.5878630099145524e-5,  6.44915448385068e-5,
    -2.9722972949777996e-5,  3.404989527903569e-6,   2.8385875492869047e-6,  -1.7454786091889367e-6,
    3.3983180220147565e-7,   1.3478130052806736e-7,  -1.4044651852345978e-7, 6.516175754117127e-8,
    -2.0765972398825126e-8,  4.944539205288153e-9,   -8.970801130436161e-10, 1.230695285664652e-10,
    -1.2404784401856479e-11, 8.679981596621243e-13,  -3.768635874745211e-14, 7.646403438531229e-16};

constexpr double kComplementary32[] = {
    0.19366209725219893,     -0.3478070169194282,  0.24989033842180433,     -0.1397372039779985,
    0.05683536286401392,     -0.01368660057602969, -0.00020239148568800358, 0.0013556311605415362,
    -0.00019695769472127824, -0.000136361497293415};
constexpr double kComplementary64[] = {
    0.1552936556088943,      -0.13397138922387314,   0.09915909237637764,    -0.06217943238812779,
    0.03224837452106064,     -0.013188386662616106,  0.0037883742688156526,  -0.0004538643349945053,
    -0.00018647924204600065, 0.00010207595741752626, -6.0088772740574954e-6, -1.0682450556154079e-5,
    2.6638682235471215e-6,   1.0348991009758478e-6,  -4.845320982051743e-7,  -1.1378022677296243e-7,
    7.858193431791966e-8,    1.65700955960882e-8,    -1.188157139242807e-8,  -3.0685994673490092e-9,
    1.2827498068810716e-9,   4.5212275468435445e-10, -5.323331435087945e-12};

// The derivative of log(R(t)), within 10 percent: what the lower part of t changes.
constexpr double kComplementarySlope64[] = {-1.74, -0.48, -2.6, -1.94};

// 2 / sqrt(pi) in two parts.
constexpr double kSlopeHigh32 = 1.1283792;
constexpr double kSlopeLow32 = -5.8635383e-8;
constexpr double kSlopeHigh64 = 1.1283791670955126;
constexpr double kSlopeLow64 = 1.533545961316588e-17;

// K of the top of this file.
constexpr double kCentre32 = 2.75;
constexpr double kCentre64 = 3.5;

// y of the top of this file.
Term decay_of_error(Term a) {
  const bool is_32 = a.is_float32();
  const Term q = is_32 ? polynomial(a, kError32) : polynomial(a, kError64);
  const Term rest = fma(a, q, is_32 ? kSlopeLow32 : kSlopeLow64);
  return fma(a, is_32 ? kSlopeHigh32 : kSlopeHigh64, a * rest);
}

// t of the top of this file, as an unevaluated sum.
struct ComplementArgument {
  Term high;
  Term low;
};

ComplementArgument complement_argument(Term a) {
  const Term numerator = a - kCentre64;
  const Term denominator = a + kCentre64;
  const Term numerator_error = a - (numerator + kCentre64);
  const Term denominator_error = a - (denominator - kCentre64);
  const Term inverse = 1 / denominator;
  const Term high = numerator * inverse;
  const Term rest = fma(-high, denominator_error, fma(-high, denominator, numerator));
  return {high, (rest + numerator_error) * inverse};
}

Term complement64(Term x) {
  const Term a = at_most(absolute(x), 27.25);
  const Term square = a * a;
  const Term square_error = fma(a, a, -square);
  const ExponentialReduction reduction = reduce_decay(square, 2 * exponent_bias(a));
  const Term r = decay_remainder(square, reduction.exponent, square_error);
  const ComplementArgument t = complement_argument(a);
  const Term slope = polynomial(t.high, kComplementarySlope64);
  const Term factor = fma(t.low, slope, -decay_of_remainder(r));
  const Term r_of_t = polynomial(t.high, kComplementary64) * (1 - t.high);
  const Term result = scaled(factor, r_of_t, reduction.exponent_bits);
  return select(x < 0, 2 - result, result);
}

// In float64, where a^2 is exact: the error of R in float32 would be too large, and its correction
// as slow.
Term complement32(Term x) {
  const Term a = convert(at_most(absolute(x), 10.06), DataType::Float64);
  const Term t = (a - kCentre32) / (a + kCentre32);
  const Term square = a * a;
  const ExponentialReduction reduction = reduce_decay(square, exponent_bias(a));
  const Term r = fma(square, -kLog2E, -reduction.exponent);
  const Term power = float32_power_of_two(r, reduction.exponent_bits);
  const Term result = convert(power * polynomial(t, kComplementary32), DataType::Float32);
  return select(x < 0, 2 - result, result);
}

}  // namespace

InstructionId erf(ExpressionBuilder& builder, InstructionId id) {
  const Term x = {&builder, id};
  const Term y = decay_of_error(at_most(absolute(x), x.is_float32() ? 3.93 : 5.93));
  // n is that of exp(-y), so y + n ln 2 remains.
  const ExponentialReduction reduction = reduce_decay(y, exponent_bias(x));
  const Term r = decay_remainder(y, reduction.exponent);
  const Term factor = power_of_two(reduction.exponent_bits);
  return with_sign_of(x, fma(decay_of_remainder(r), factor, 1 - factor)).id;
}

InstructionId erfc(ExpressionBuilder& builder, InstructionId id) {
  const Term x = {&builder, id};
  return (x.is_float32() ? complement32(x) : complement64(x)).id;
}

}  // namespace tessera::codegen
