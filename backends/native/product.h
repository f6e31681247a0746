// MatMul and Gemm as products of matrices that lie somewhere in the memory of two values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/backend.h"

namespace tessera::native {

// `count` products of [rows, depth] by [depth, columns]; the results lie dense, one behind the
// other.
struct Product {
  int64_t count = 1;
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t depth = 1;
  std::vector<int64_t> left_starts;   // of each product, in elements
  std::vector<int64_t> right_starts;  // empty: one matrix on the right for all
  int64_t left_row = 0;               // from row to row
  int64_t left_depth = 1;
  int64_t right_depth = 0;
  int64_t right_column = 1;
  // Gemm only.
  float alpha = 1;
  float beta = 1;
  int32_t addend = -1;  // value
  int64_t addend_row = 0;
  int64_t addend_column = 0;

  bool has_one_right() const { return right_starts.empty(); }
  // Whether the left value is one dense matrix, so that its rows follow from its elements.
  bool has_open_rows() const {
    return count == 1 && has_one_right() && left_depth == 1 && left_row == depth && depth > 0;
  }
  double flops() const {
    return 2 * static_cast<double>(count) * static_cast<double>(rows) *
           static_cast<double>(columns) * static_cast<double>(depth);
  }
};

// Of a MatMul or Gemm whose types are known.
Product product_of(const plugin::Node& node);

}  // namespace tessera::native
