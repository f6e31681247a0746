// Where the library is not as accurate as the ops must be. Each function says why it is refused, or
// "" if its error is a few units in the last place, or of the sum of magnitudes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/eltwise.h"

namespace tessera::onednn {

// Checks a unary function: alone, as a post-operation or as a composite.
std::string explain_inexact(const Eltwise& function);

// Checks a function of an exact number, so not a post-operation of sums and products, whose
// rounding errors count more.
std::string explain_inexact_tail(const Eltwise& function);

// Checks a pooling that adds up this many elements for each result.
std::string explain_inexact_sum(int64_t elements);

// Checks a reduction of this many elements to each result.
std::string explain_inexact_reduction(std::string_view op, int64_t elements);

// Checks a normalization of rows of this length by their own mean and variance.
std::string explain_inexact_statistics(std::string_view op, int64_t length);

// Whether the errors of an RNN may exceed its bound after `steps` steps. LSTM and GRU stay within.
bool is_rough_recurrence(std::string_view op, int64_t steps, dnnl::algorithm function);

// Whether a convolution begins each sum with the tensor that it adds in place (post-operation sum),
// so that every product is rounded to the size of that tensor. Kernels without AVX-512 do; others
// add it to the finished sum.
bool is_rough_convolution_sum();

}  // namespace tessera::onednn
