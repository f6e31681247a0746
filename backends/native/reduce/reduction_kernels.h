// The loops of reduction.cc over float32, compiled for every instruction set that Highway
// supports.
#pragma once

#include <cstdint>

namespace tessera::native {

// The function that is accumulated over the elements. ExponentialSum is the sum of exp(x - shift).
enum class ReduceOp : uint8_t { Sum, AbsoluteSum, SquareSum, ExponentialSum, Product, Max, Min };

// The largest number of columns of one call, and the unit to which its accumulators must be rounded
// up.
inline constexpr int64_t kMaxColumns = 512;
inline constexpr int64_t kColumnUnit = 16;

// Accumulators are double, so that sums of any length keep the digits of float32 and squares do not
// overflow. A NaN makes an accumulator NaN. `shifts` is null except for ExponentialSum; it has one
// entry for each accumulator, and room for as many as these.
struct ReductionLoops {
  double start = 0;  // the accumulator of no elements
  // Adds `length` elements, from from + s * stride on, to accumulators[s], for s in [0, results).
  void (*rows)(const float* from, int64_t results, int64_t stride, int64_t length,
               const float* shifts, double* accumulators);
  // Adds from[r * stride + c] for r in [0, rows) to accumulators[c], for c in [0, width).
  void (*columns)(const float* from, int64_t rows, int64_t stride, int64_t width,
                  const float* shifts, double* accumulators);
  // Combines others[i] with accumulators[i], for i in [0, count).
  void (*join)(const double* others, int64_t count, double* accumulators);
};

// For the best instruction set of this processor.
ReductionLoops find_reduction_loops(ReduceOp op);

}  // namespace tessera::native
