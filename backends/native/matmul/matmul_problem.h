// MatMul and Gemm as a batch of matrix products with strided operands.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/backend.h"

namespace tessera::native {

// `count` products of [rows, depth] by [depth, columns]. The results are dense, one after the
// other.
struct MatMulProblem {
  int64_t count = 1;
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t depth = 1;
  std::vector<int64_t> left_offsets;   // of each product, in elements
  std::vector<int64_t> right_offsets;  // empty: all products have the same right matrix
  int64_t left_row_stride = 0;
  int64_t left_depth_stride = 1;
  int64_t right_depth_stride = 0;
  int64_t right_column_stride = 1;
  // Gemm only.
  float alpha = 1;
  float beta = 1;
  int32_t addend = -1;  // value
  int64_t addend_row_stride = 0;
  int64_t addend_column_stride = 0;

  bool has_shared_right() const { return right_offsets.empty(); }
  // Whether the left operand is one dense matrix, so that the number of its rows may differ from
  // run to run.
  bool has_dynamic_rows() const {
    return count == 1 && has_shared_right() && left_depth_stride == 1 && left_row_stride == depth &&
           depth > 0;
  }
  double flops() const {
    return 2 * static_cast<double>(count) * static_cast<double>(rows) *
           static_cast<double>(columns) * static_cast<double>(depth);
  }
};

// The offset of each element of a batch with these dimensions and strides, in row-major order.
std::vector<int64_t> batch_offsets(const std::vector<int64_t>& batch,
                                   const std::vector<int64_t>& strides);

// The problem of a MatMul or Gemm whose types are known.
MatMulProblem matmul_problem_of(const plugin::Node& node);

// A matrix product for element types other than float32, correct rather than fast. `addend` is null
// if there is none. All operands have the type for which it was found.
using GenericMatMul = void (*)(plugin::RunContext& context, const MatMulProblem& problem,
                               const void* left, const void* right, const void* addend, void* to);

// Null if there is none for this data type.
GenericMatMul find_generic_matmul(int32_t data_type);

}  // namespace tessera::native
