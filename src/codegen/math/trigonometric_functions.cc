// sin and cos of float32.
//
// |x| = (n + q) pi/2 with an integer n and |q| <= 0.5625, found in float64. sin r = r + r^3 S(r^2)
// and cos r = 1 + r^2 C(r^2) for r = q pi/2, in float32. S and C, of degree 3, are minimax
// polynomials for the relative error of sin and cos, which is 2^-31.8 and 2^-30.9; they were found
// as those of exponential_functions.cc.
//
// The reduction is exact enough for the largest floats (Payne and Hanek, Radian reduction for
// trigonometric functions, but without integers). Only n modulo 4 matters. If x is a multiple of
// 2^e, multiples of 2^(2-e) may be subtracted from 2/pi, because that changes n by a multiple of 4.
// So for large x, only a small part of 2/pi remains, and its product with x is less than 2^50. Two
// float64 have enough bits of this part for an error of 2^-58 in q. n is the rounded product
// rounded to an integer; because the first rounding has an error of at most 1/16, q exceeds 1/2.
#include "base/errors/check.h"
#include "codegen/expression/term.h"
#include "codegen/math/math_functions.h"

namespace tessera::codegen {
namespace {

constexpr double kSine[] = {-0.16666667, 0.008333362, -0.00019845308, 2.7520616e-6};
constexpr double kCosine[] = {-0.5, 0.04166662, -0.0013886215, 2.4323019e-5};
constexpr double kHalfPi = 1.5707963267948966;

// 2/pi for x >= lowest in two parts: without multiples of 2^(25-e) if lowest = 2^e.
struct InverseHalfPi {
  double lowest;
  double high;
  double low;
};
constexpr InverseHalfPi kInverseHalfPi[] = {
    {0, 0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55},
    {0x1p50, -0x1.1b1bbead603d9p-28, 0x1.5f47d4d377037p-82},
    {0x1p76, -0x1.5ac07b1505c16p-53, 0x1.a6ee06db14acdp-107},
    {0x1p102, -0x1.505c1596447e5p-81, 0x1.b14acc9e21c82p-135},
};

struct Quadrant {
  Term remainder;  // r, float32
  Term number;     // n modulo 4, in the last bits of a uint32
};

// Of a float32 that is not negative. r is NaN for NaN and infinity.
Quadrant reduce(Term x) {
  TESSERA_CHECK(x.is_float32(), "sin and cos take float32 only");
  const Term wide = convert(x, DataType::Float64);
  Term high = wide.number(kInverseHalfPi[0].high);
  Term low = wide.number(kInverseHalfPi[0].low);
  for (const InverseHalfPi& window : std::span(kInverseHalfPi).subspan(1)) {
    const Term is_less = wide < window.lowest;
    high = select(is_less, high, window.high);
    low = select(is_less, low, window.low);
  }
  const Term product = wide * high;
  const Term product_error = fma(wide, high, -product);
  // Floats of this size are integers, and their last bits are those of the integer.
  const double magic = 0x1.8p52;
  const Term shifted = product + magic;
  // In this order, only the last sum is rounded where q is small.
  const Term q = fma(wide, low, (product - (shifted - magic)) + product_error);
  return {convert(q * kHalfPi, DataType::Float32), convert(to_bits(shifted), DataType::UInt32)};
}

// sin(r) if n is even, cos(r) if it is odd; with the other sign if the highest bit of `sign` is
// set.
Term sine_of_quadrant(Term r, Term number, Term sign) {
  const Term square = r * r;
  const Term sine = fma(r * square, polynomial(square, kSine), r);
  const Term cosine = fma(square, polynomial(square, kCosine), 1);
  const Term is_even = (number & number.number(1)) == number.number(0);
  const Term sign_bits = sign & sign.bits(0x80000000u);
  return from_bits(to_bits(select(is_even, sine, cosine)) ^ sign_bits);
}

}  // namespace

InstructionId sin(ExpressionBuilder& builder, InstructionId id) {
  const Term x = {&builder, id};
  const Quadrant quadrant = reduce(absolute(x));
  const Term sign = (quadrant.number << 30) ^ to_bits(x);
  return sine_of_quadrant(quadrant.remainder, quadrant.number, sign).id;
}

InstructionId cos(ExpressionBuilder& builder, InstructionId id) {
  // cos(x) = sin(x + pi/2)
  const Quadrant quadrant = reduce(absolute({&builder, id}));
  const Term next = quadrant.number + quadrant.number.number(1);
  return sine_of_quadrant(quadrant.remainder, next, next << 30).id;
}

}  // namespace tessera::codegen
