// The loops of reduction.cc over float32, compiled for every instruction set that the processor may
// have.
#pragma once

#include <cstdint>

namespace tessera::native {

// What is taken together of the numbers of a set. ExponentialSum is that of exp(x - shift).
enum class Gathering : uint8_t {
  Sum,
  AbsoluteSum,
  SquareSum,
  ExponentialSum,
  Product,
  Largest,
  Smallest
};

// Columns that one call takes at most, and to a multiple of what its states must have room for.
inline constexpr int64_t kMostColumns = 512;
inline constexpr int64_t kColumnUnit = 16;

// States are double, so that sums of any length keep the digits of float32 and squares do not
// overflow. A NaN makes every state NaN. `shifts` (one for each state, as many as room for) is null
// but for ExponentialSum.
struct ReductionLoops {
  double start = 0;  // the state of an empty set
  // states[s] takes in `length` numbers from from + s * stride on, for s in [0, sets).
  void (*rows)(const float* from, int64_t sets, int64_t stride, int64_t length, const float* shifts,
               double* states);
  // states[c] takes in from[r * stride + c] for r in [0, rows), for c in [0, width).
  void (*columns)(const float* from, int64_t rows, int64_t stride, int64_t width,
                  const float* shifts, double* states);
  // states[i] becomes that of both sets, for i in [0, count).
  void (*join)(const double* others, int64_t count, double* states);
};

// For the best instruction set of this processor.
ReductionLoops find_reduction_loops(Gathering gathering);

}  // namespace tessera::native
