// Products by constant weights with one level of Strassen's algorithm in Winograd's form: seven
// products of quarters in place of eight. Source: S. Winograd, "On multiplication of 2 x 2
// matrices", Linear Algebra and its Applications 4 (1971).
#pragma once

#include <cstdint>

#include "base/activation.h"
#include "matmul/packed_product.h"
#include "tessera/backend.h"

namespace tessera::native {

// [rows, depth] by [depth, columns]. The halves of rows and columns need not be equal: the second
// one is as if it ended with zeros.
struct StrassenProduct {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;  // even
  int64_t left_row_stride = 0;

  // The sizes of the first halves.
  int64_t half_rows() const { return (rows + 1) / 2; }
  int64_t half_columns() const;  // whole panels
  int64_t half_depth() const { return depth / 2; }
};

struct StrassenOperands {
  const float* left = nullptr;
  const float* right = nullptr;   // packed
  float* to = nullptr;            // [rows, columns]
  const float* bias = nullptr;    // by column; null: none
  const float* addend = nullptr;  // [rows, columns], may be `to`; null: none
  Activation activation;          // clips only
};

// Whether the algorithm may be used and can pay. It adds rows, so a row of large numbers takes
// digits of another row: a precision below float32 must be allowed. With smaller matrices the sums
// take longer than what is saved.
bool admits_strassen(const plugin::ProposeContext& context, const StrassenProduct& product);

int64_t strassen_workspace_bytes(const StrassenProduct& product);

// `workspace` has as many bytes as strassen_workspace_bytes() returns.
void run_strassen(plugin::RunContext& context, const StrassenProduct& product, int64_t threads,
                  const StrassenOperands& operands, void* workspace);

// Packs a matrix [depth, columns], as seven sums of its quarters.
plugin::Pack strassen_pack(const PanelSource& source);

}  // namespace tessera::native
