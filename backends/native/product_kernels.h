// The loops of product.cc, compiled for every instruction set that the processor may have.
#pragma once

#include <cstdint>

namespace tessera::native {

// What becomes of each sum: sum * alpha + addend * beta, and of that what Relu leaves.
struct ProductEnd {
  float alpha = 1;
  float beta = 1;
  const float* addend = nullptr;  // of the first sum; null: none
  int64_t addend_row = 0;         // from row to row
  int64_t addend_column = 0;      // 0 or 1
  bool has_relu = false;
};

// Some rows on the left by some columns on the right.
struct ProductPart {
  const float* left = nullptr;
  int64_t left_row = 0;
  int64_t left_depth = 1;
  const float* right = nullptr;
  int64_t right_depth = 0;   // panels: from one step of the sums to the next
  int64_t right_column = 0;  // dots: from column to column, whose elements are neighbours
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  float* to = nullptr;
  int64_t to_row = 0;
  ProductEnd end;
};

struct ProductLoops {
  // Columns of a panel.
  int64_t panel = 0;
  // At most `panel` columns that are neighbours for each step of the sums.
  void (*columns)(const ProductPart& part) = nullptr;
  // The same where each step has a whole panel of them, which the sums need not use.
  void (*padded)(const ProductPart& part) = nullptr;
  // Any number of columns, each a vector; the rows are vectors too (left_depth is 1).
  void (*dots)(const ProductPart& part) = nullptr;
};

// For the best instruction set of this processor.
ProductLoops find_product_loops();

}  // namespace tessera::native
