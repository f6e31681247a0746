// Matrix products for the reference kernels: blocked, threaded, and accumulated in a wide type.
// Conv, ConvTranspose, Gemm, MatMul and recurrences use it with operands of their own.
#pragma once

#include <cstdint>

#include "base/threads/function_ref.h"
#include "ops/op.h"

namespace tessera::ops {

// An operand as a set of lines. A line runs either along the depth (a row of the left matrix, a
// column of the right one) or across it (one term of the sum for all rows or all columns).
template <class Sum>
struct MatrixOperand {
  // Writes `count` elements of a line of product number `product` to `target`, from element `begin`
  // on. Must be thread-safe.
  FunctionRef<void(int64_t product, int64_t line, int64_t begin, int64_t count, Sum* target)> read;
  bool runs_along_depth = false;
};

// `count` products of equal shape: [rows, depth] times [depth, columns]. Operands are converted to
// Sum block by block, so memory is bounded for every shape. The functions are held by reference, so
// they must outlive this struct.
template <class Sum>
struct MatrixProduct {
  int64_t count = 1;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  MatrixOperand<Sum> left;
  MatrixOperand<Sum> right;
  // Receives finished elements of one row, each exactly once. Must be thread-safe.
  FunctionRef<void(int64_t product, int64_t row, int64_t column, int64_t count, const Sum* sums)>
      store;
};

// Sum is double (for floating types) or uint64_t (for integers, sign-extended: sums modulo 2^64, so
// that integers wrap around). The result is bitwise equal for every number of threads. `call` gives
// threads and memory.
template <class Sum>
void multiply_matrices(const KernelCall& call, const MatrixProduct<Sum>& problem);

extern template void multiply_matrices<double>(const KernelCall&, const MatrixProduct<double>&);
extern template void multiply_matrices<uint64_t>(const KernelCall&, const MatrixProduct<uint64_t>&);

}  // namespace tessera::ops
