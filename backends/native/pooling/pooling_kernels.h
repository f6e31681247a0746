// The loops of pooling.cc, compiled for every instruction set that Highway supports.
#pragma once

#include <cstdint>

namespace tessera::native {

// One row of outputs, and the input rows that its windows cover.
struct PoolRow {
  const float* from = nullptr;  // column 0 of the first input row
  int64_t planes = 1;           // of rows
  int64_t plane_step = 0;       // in elements
  int64_t rows = 1;             // in each plane
  int64_t row_step = 0;
  int64_t lanes = 1;    // elements of a pixel
  int64_t columns = 1;  // pixels of a row
  int64_t outputs = 1;
  int64_t kernel = 1;  // along the row, as the following members
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_begin = 0;
  // The factors of sums: one for each output, and one for all. Null: the maximum is taken instead
  // of the sum.
  const float* factors = nullptr;
  float factor = 1;
};

// A window without inputs gives the maximum -infinity and the sum 0. NaN counts as the maximum.
using PoolLoop = void (*)(const PoolRow& row, float* to);

struct PoolLoops {
  PoolLoop single = nullptr;  // for pixels of one element
  PoolLoop wide = nullptr;    // for any
};

// For the best instruction set of this processor.
PoolLoops find_pool_loops(bool is_max);

}  // namespace tessera::native
