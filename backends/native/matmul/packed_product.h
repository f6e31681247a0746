// Products of rows by constant weights that were packed into panels of columns: matrix products,
// and convolutions.
#pragma once

#include <cstdint>

#include "matmul/gemm_kernels.h"
#include "tessera/backend.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

// Rows of the left matrix that are not in memory as such: row r has the pixels that output r of a
// convolution reads, tap by tap, zeros for those outside.
struct PatchRows {
  plugin::WindowAxis rows;
  plugin::WindowAxis columns;
  int64_t channels = 0;  // of a pixel; pixels are neighbours

  int64_t length() const { return rows.kernel * columns.kernel * channels; }
  // Copies `count` rows from `first` on; `from` is the first pixel of the first image.
  void gather(const float* from, int64_t first, int64_t count, float* to) const;
};

struct PackedProduct {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  int64_t left_row_stride = 0;
  int64_t left_depth_stride = 1;
  // Patches are copied together, some rows at a time; then left_row_stride and left_depth_stride do
  // not count.
  bool is_gathered = false;
  PatchRows gathered;
  int64_t to_row_stride = 0;  // 0: the rows of the result are neighbours

  double flops() const {
    return 2 * static_cast<double>(rows) * static_cast<double>(columns) *
           static_cast<double>(depth);
  }
};

struct PackedOperands {
  const float* left = nullptr;
  const float* right = nullptr;  // packed
  float* to = nullptr;           // [rows, columns], see to_row_stride
  GemmEpilogue epilogue;         // for the first row and column
};

// The workspace that run_packed_product() needs with `threads` threads; 0 unless rows are gathered.
int64_t packed_product_workspace_bytes(const PackedProduct& product, int64_t threads);

// Divides the product among at most `threads` threads. `workspace` has as many bytes as
// packed_product_workspace_bytes() returns. `to` may be the addend.
void run_packed_product(plugin::RunContext& context, const PackedProduct& product, int64_t threads,
                        const PackedOperands& operands, void* workspace);

// A matrix [depth, columns] that is packed: the columns of a panel side by side, padded with zeros.
struct PanelSource {
  int64_t depth = 0;
  int64_t columns = 0;
  int64_t depth_stride = 0;
  int64_t column_stride = 1;
  // The number of parts of the depth, if not 0: the taps of a convolution's weights. The elements
  // of a part are depth_stride apart, and the parts are neighbours.
  int64_t parts = 0;
};

int64_t packed_floats(const PanelSource& source);
void pack_panels(plugin::RunContext& context, const PanelSource& source, const float* from,
                 float* to);
plugin::Pack panels_pack(const PanelSource& source);

}  // namespace tessera::native
