// The loops of matrix products in float32, compiled for every instruction set that Highway
// supports.
#pragma once

#include <cstdint>

#include "base/activation.h"

namespace tessera::native {

// The operations that are applied to each sum: activation(sum * alpha + bias + addend * beta).
struct GemmEpilogue {
  float alpha = 1;
  float beta = 1;
  const float* bias = nullptr;    // by column, for the first one; null: none
  const float* addend = nullptr;  // for the first sum; null: none
  int64_t addend_row_stride = 0;
  int64_t addend_column_stride = 0;  // 0 or 1
  Activation activation;
};

// A block of the result: some rows of the left matrix by some columns of the right one.
struct GemmBlock {
  const float* left = nullptr;
  int64_t left_row_stride = 0;
  int64_t left_depth_stride = 1;
  const float* right = nullptr;
  int64_t right_depth_stride = 0;   // between rows of a panel
  int64_t right_column_stride = 0;  // for dots: between columns, which are contiguous
  // Memory that will be read next, as many bytes as the panel on the right has: it is prefetched
  // meanwhile, in order. Null: none. It need not be readable.
  const float* ahead = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  float* to = nullptr;
  int64_t to_row_stride = 0;
  GemmEpilogue epilogue;
};

// The rows that the loops hold in registers with most instruction sets; blocks have multiples.
inline constexpr int64_t kGemmRowUnit = 6;

struct GemmLoops {
  // The number of columns of a panel.
  int64_t panel = 0;
  // For at most `panel` columns; the rows of the right matrix are contiguous.
  void (*columns)(const GemmBlock& part) = nullptr;
  // Same as `columns`, if a whole panel may be read from each row of the right matrix, even if only
  // some of its columns are used.
  void (*padded)(const GemmBlock& part) = nullptr;
  // For any number of columns, as dot products: rows on the left (left_depth_stride is 1) and
  // columns on the right are contiguous.
  void (*dots)(const GemmBlock& part) = nullptr;
};

// For the best instruction set of this processor.
GemmLoops find_gemm_loops();

}  // namespace tessera::native
