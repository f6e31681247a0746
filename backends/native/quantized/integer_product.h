// Matrix products of bytes, divided among threads: of rows that are in memory, or that a
// convolution reads, by matrices that are packed into panels of columns.
#pragma once

#include <cstdint>
#include <string>

#include "matmul/matmul_problem.h"
#include "quantized/integer_kernels.h"
#include "tessera/backend.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

// --- The right side ------------------------------------------------------------------------------

// Matrices [depth, columns] of bytes, one after the other.
struct RightSource {
  int64_t count = 1;
  int64_t depth = 0;
  int64_t columns = 0;
  int64_t depth_stride = 0;
  int64_t column_stride = 1;
  // The number of parts of the depth: the taps of a convolution's weights. The elements of a part
  // are depth_stride apart, and the parts are neighbours.
  int64_t parts = 1;
  // Those of the rows on the left (LeftAccess), of which each begins with a new step.
  int64_t runs = 1;
  int64_t matrix_stride = 0;
  bool is_signed = true;
};

// Whether find_integer_loops() may take the elements of a dense tensor to be small.
bool has_small_weights(const plugin::Value& weights);

// A packed matrix: for each panel, the sums of its columns (int32), and its elements step by step,
// those of one step side by side for each column. All are padded with zeros. Unsigned elements are
// packed minus 128.
struct RightPanels {
  int64_t count = 1;    // matrices
  int64_t columns = 0;  // of a matrix
  int64_t panel = 0;    // columns of a panel
  int64_t panels = 0;   // of a matrix
  int64_t steps = 0;
  int64_t unit = 0;  // bytes of a step, for each column

  int64_t panel_bytes() const {
    return panel * (static_cast<int64_t>(sizeof(int32_t)) + steps * unit);
  }
  int64_t matrix_bytes() const { return panels * panel_bytes(); }
  int64_t bytes() const { return count * matrix_bytes(); }
  int64_t padded_columns() const { return panels * panel; }
};

RightPanels right_panels(const RightSource& source, const IntegerLoops& loops);

// Packs matrices [first, end).
void pack_right(const RightSource& source, const IntegerLoops& loops, int64_t first, int64_t end,
                const void* from, void* to);
plugin::Pack right_pack(const RightSource& source, const IntegerLoops& loops);

// --- The left side -------------------------------------------------------------------------------

// Rows that are not in memory as such: row r has the elements that output r of a convolution reads,
// tap by tap, and the zero point for those outside.
struct BytePatches {
  plugin::WindowAxis rows;
  plugin::WindowAxis columns;
  int64_t channels = 0;        // of each tap
  int64_t channel_stride = 1;  // elements
  int64_t pixel_stride = 0;
  int64_t image_stride = 0;
  int64_t pixel_channels = 0;  // of the tensor: those of all products

  int64_t length() const { return rows.kernel * columns.kernel * channels; }
  bool is_plain() const {
    const auto is_one = [](const plugin::WindowAxis& axis) {
      return axis.kernel == 1 && axis.stride == 1 && axis.input == axis.output &&
             axis.pad_begin == 0;
    };
    return is_one(rows) && is_one(columns);
  }
};

// --- Products ------------------------------------------------------------------------------------

struct IntegerProduct {
  int64_t count = 1;  // products
  int64_t rows = 0;   // of each
  int64_t columns = 0;
  int64_t depth = 0;
  int64_t left_row_stride = 0;
  int64_t left_depth_stride = 1;
  bool has_patches = false;  // then the two strides do not count
  BytePatches patches;
  // From one product to the next, in elements. With `has_batch`, those of `batch` count for the
  // factors; the right ones are then numbers of packed matrices.
  bool has_batch = false;
  MatMulBatch batch;
  int64_t left_stride = 0;
  int64_t right_stride = 0;  // packed matrices: 0 or 1
  int64_t to_stride = 0;
  int64_t to_row_stride = 0;

  double flops() const {
    return 2 * static_cast<double>(count) * static_cast<double>(rows) *
           static_cast<double>(columns) * static_cast<double>(depth);
  }
};

struct IntegerOperands {
  const uint8_t* left = nullptr;
  LeftElements left_elements;
  const void* right = nullptr;  // packed
  void* to = nullptr;
  int64_t to_bytes = 1;  // of an element
  // Its arrays have the columns of all packed matrices, one after the other. Its row_sums are
  // computed if there are right_zeros.
  IntegerEpilogue epilogue;
};

// The workspace that run_integer_product() needs with `threads` threads.
int64_t integer_product_workspace(const IntegerProduct& product, const IntegerLoops& loops,
                                  bool is_left_signed, int64_t threads);

// Divides the products among at most `threads` threads.
void run_integer_product(plugin::RunContext& context, const IntegerProduct& product,
                         const IntegerLoops& loops, int64_t threads,
                         const IntegerOperands& operands, void* workspace);

}  // namespace tessera::native
