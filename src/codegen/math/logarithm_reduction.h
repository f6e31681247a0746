// The first step of logarithms: x = 2^k (1 + f) with an integer k and 1 + f in
// [sqrt(1/2), sqrt(2)].
#pragma once

#include "codegen/expression/term.h"

namespace tessera::codegen {

struct LogarithmReduction {
  Term f;
  Term exponent;  // an unsigned integer: k 2^(mantissa bits), modulo 2^(bits of the type)
};

// Reduces a positive finite x; for other values, the result has no meaning.
LogarithmReduction reduce_logarithm(Term x);
// Same as reduce_logarithm(), for an x that is not denormal.
LogarithmReduction reduce_normal_logarithm(Term x);

// k of float64 as a float64.
Term float_of_exponent(Term exponent);

}  // namespace tessera::codegen
