// How precise and how large numbers of a floating-point type are, where errors are bounded.
#pragma once

#include "tessera/data_type.h"

namespace tessera::verification {

// The largest finite number of a floating-point type.
double largest_finite(DataType type);

// Epsilon, and the distance from |x| to the next number, of a floating-point type.
double epsilon_of(DataType type);
double ulp_of(DataType type, double x);
// Results of this magnitude or less may be off by as much, because kernels flush denormals, also in
// between: x * exp(x) is zero as soon as exp(x) is denormal.
double flushed_magnitude_of(DataType type);

}  // namespace tessera::verification
