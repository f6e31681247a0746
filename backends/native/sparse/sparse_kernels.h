// The loops of sparse_matmul.cc, compiled for every instruction set that Highway supports.
#pragma once

#include <cstdint>

namespace tessera::native {

// Rows of the dense factor that a product with a sparse right factor processes at once.
inline constexpr int64_t kPanelRows = 16;

struct SparseLoops {
  // result[j] = bias[j] + sum of values[k] * dense[columns[k] * width + j], for j in [0, width) and
  // k in [0, count); `bias` may be null.
  void (*combine_rows)(const float* values, const int32_t* columns, int64_t count,
                       const float* dense, int64_t width, const float* bias, float* result);
  // Both work on panels of kPanelRows floats per element. scatter_panel adds values[k] * from to
  // to[columns[k]]; gather_panel computes the sum of values[k] * from[columns[k]].
  void (*scatter_panel)(const float* values, const int32_t* columns, int64_t count,
                        const float* from, float* to);
  void (*gather_panel)(const float* values, const int32_t* columns, int64_t count,
                       const float* from, float* to);
};

// For the best instruction set of this processor.
const SparseLoops& sparse_loops();

}  // namespace tessera::native
