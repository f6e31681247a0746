// The loops of sparse_matmul.cc, compiled for every instruction set that the processor may have.
#pragma once

#include <cstdint>

namespace tessera::native {

// Rows of the dense factor that products with a sparse right factor take at once.
inline constexpr int64_t kPanelRows = 16;

struct SparseLoops {
  // result[j] = bias[j] + sum of values[k] * dense[columns[k] * width + j], for j in [0, width) and
  // k in [0, count); `bias` may be null.
  void (*combine_rows)(const float* values, const int32_t* columns, int64_t count,
                       const float* dense, int64_t width, const float* bias, float* result);
  // Both on panels of kPanelRows floats a place. The first adds values[k] * from to
  // to[columns[k]]; the second gives the sum of values[k] * from[columns[k]].
  void (*scatter_panel)(const float* values, const int32_t* columns, int64_t count,
                        const float* from, float* to);
  void (*gather_panel)(const float* values, const int32_t* columns, int64_t count,
                       const float* from, float* to);
};

// For the best instruction set of this processor.
const SparseLoops& sparse_loops();

}  // namespace tessera::native
