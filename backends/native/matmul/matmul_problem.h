// MatMul and Gemm as a batch of matrix products with strided operands.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tessera/backend.h"

namespace tessera::native {

// What of a MatMul or Gemm does not depend on the sizes of its operands, apart from which of them
// are 1.
struct MatMulOp {
  bool is_gemm = false;
  // Gemm only.
  bool is_left_transposed = false;
  bool is_right_transposed = false;
  float alpha = 1;
  float beta = 1;
  int32_t addend = -1;  // value
  // Whether the addend has a number for each row and each column of the result, or one for all.
  bool has_addend_rows = false;
  bool has_addend_columns = false;
};

MatMulOp matmul_op_of(const plugin::Node& node);

// The axes of a batch of products, the innermost first. Neighbours are merged if that is possible.
struct MatMulBatch {
  struct Axis {
    int64_t dim = 0;
    int64_t left = 0;  // strides, in elements
    int64_t right = 0;
  };
  struct Offsets {
    int64_t left = 0;
    int64_t right = 0;
  };
  static constexpr size_t kMaxAxes = 8;

  size_t rank = 0;
  std::array<Axis, kMaxAxes> axes = {};

  // The next outer axis. Throws Failure (TESSERA_UNSUPPORTED) if there are too many.
  void add(const Axis& axis);
  // Where the operands of a product begin.
  Offsets offsets_of(int64_t product) const {
    Offsets offsets;
    for (size_t index = 0; index < rank; ++index) {
      const Axis& axis = axes[index];
      int64_t position = product;
      if (index + 1 < rank) {
        position = product % axis.dim;
        product /= axis.dim;
      }
      offsets.left += position * axis.left;
      offsets.right += position * axis.right;
    }
    return offsets;
  }
};

// `count` products of [rows, depth] by [depth, columns]. The results are dense, one after the
// other.
struct MatMulProblem {
  int64_t count = 1;
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t depth = 1;
  MatMulBatch batch;
  bool has_shared_right = true;  // all products have the same right matrix
  int64_t left_row_stride = 0;
  int64_t left_depth_stride = 1;
  int64_t right_depth_stride = 0;
  int64_t right_column_stride = 1;
  int64_t addend_row_stride = 0;
  int64_t addend_column_stride = 0;

  double flops() const {
    return 2 * static_cast<double>(count) * static_cast<double>(rows) *
           static_cast<double>(columns) * static_cast<double>(depth);
  }
};

// The problem for operands of these sizes. Throws Failure (TESSERA_UNSUPPORTED) if their batches
// alternate too often; whether they do depends only on which dimensions are 1.
MatMulProblem matmul_problem_of(const MatMulOp& op, std::span<const int64_t> left,
                                std::span<const int64_t> right);

// A matrix product for element types other than float32, correct rather than fast. `addend` is null
// if there is none. All operands have the type for which it was found.
using GenericMatMul = void (*)(plugin::RunContext& context, const MatMulOp& op,
                               const MatMulProblem& problem, const void* left, const void* right,
                               const void* addend, void* to);

// Null if there is none for this data type.
GenericMatMul find_generic_matmul(int32_t data_type);

}  // namespace tessera::native
