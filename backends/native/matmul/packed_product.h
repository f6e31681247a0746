// Products of rows by constant weights that were packed into panels of columns: matrix products,
// and convolutions with one tap.
#pragma once

#include <cstdint>

#include "matmul/gemm_kernels.h"
#include "tessera/backend.h"

namespace tessera::native {

// Where row r of the left matrix begins: rows lie `row_stride` elements apart within a line, lines
// `line_stride` within an image, images `image_stride`.
struct LeftRows {
  int64_t rows_of_line = 1;
  int64_t lines_of_image = 1;
  int64_t row_stride = 0;
  int64_t line_stride = 0;
  int64_t image_stride = 0;

  int64_t offset_of(int64_t row) const {
    const int64_t line = row / rows_of_line;
    return row % rows_of_line * row_stride + line % lines_of_image * line_stride +
           line / lines_of_image * image_stride;
  }
};

struct PackedProduct {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  int64_t left_row_stride = 0;
  int64_t left_depth_stride = 1;
  // Rows that are not equally far apart are copied together; then left_row_stride and
  // left_depth_stride do not count.
  bool is_gathered = false;
  LeftRows gathered;
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

// The workspace that run_packed_product() needs with so many threads; 0 unless rows are gathered.
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
};

int64_t packed_floats(const PanelSource& source);
void pack_panels(plugin::RunContext& context, const PanelSource& source, const float* from,
                 float* to);
plugin::Pack panels_pack(const PanelSource& source);

}  // namespace tessera::native
