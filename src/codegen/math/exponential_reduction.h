// The parts of exponential functions: x = n ln 2 + r with an integer n and |r| <= 0.3468, and
// exp(r) - 1 as a polynomial. For functions that decay, exp(-x), the names have "decay"; they avoid
// changes of sign.
#pragma once

#include "codegen/expression/term.h"

namespace tessera::codegen {

struct ExponentialReduction {
  Term exponent_bits;  // an unsigned integer; its last bits are those of n + bias
  Term exponent;       // n, a float
};

// Of exp(x), exp(-x) and 2^x. |n + bias| is at most a quarter of 2^(mantissa bits).
ExponentialReduction reduce_exponential(Term x, int bias);
ExponentialReduction reduce_decay(Term x, int bias);
ExponentialReduction reduce_power_of_two(Term x, int bias);

// x - n ln 2; for decay x + n ln 2, and with `rest` x + rest + n ln 2. ln 2 has twice the precision
// of the type.
Term exponential_remainder(Term x, Term exponent);
Term decay_remainder(Term x, Term exponent);
Term decay_remainder(Term x, Term exponent, Term rest);

// exp(r) - 1 and 1 - exp(-r) for |r| <= 0.3468.
Term expm1_of_remainder(Term r);
Term decay_of_remainder(Term r);

// 2^n if the bias of the reduction was that of the type, or 2^(n-1) if it was 1 less; the result
// is a normal number.
Term power_of_two(Term exponent_bits);

// (1 + y) 2^n and (1 + y) z 2^n if the bias of the reduction was twice that of the type. 2^n itself
// may be less or more than the type can have.
Term scaled(Term y, Term exponent_bits);
Term scaled(Term y, Term z, Term exponent_bits);

// 2^(n + r) in float64 for |r| <= 1/2, with a relative error that is small in float32: 2^-28.7.
Term float32_power_of_two(Term r, Term exponent_bits);

}  // namespace tessera::codegen
