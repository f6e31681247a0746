// Matrix products for the reference kernels: blocked, threaded, and summed in a wide type. Conv,
// ConvTranspose, Gemm, MatMul and recurrences are all this product over operands of their own.
#pragma once

#include <cstdint>

#include "base/function_ref.h"
#include "ops/op.h"

namespace tessera::ops {

// One operand as lines that run either along the depth (a row of the left matrix, a column of the
// right one) or across it (one step of the sum for all rows or all columns).
template <class Sum>
struct MatrixOperand {
  // Writes `count` elements, from element `begin` on, of a line of the given product to `target`.
  // Called from many threads.
  FunctionRef<void(int64_t product, int64_t line, int64_t begin, int64_t count, Sum* target)> read;
  bool runs_along_depth = false;
};

// `count` products of equal shape: [rows, depth] times [depth, columns]. Operands are converted to
// Sum block by block, so memory stays bounded whatever the shape. The functions are only referred
// to: they stand in variables beside it.
template <class Sum>
struct MatrixProduct {
  int64_t count = 1;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  MatrixOperand<Sum> left;
  MatrixOperand<Sum> right;
  // Takes finished elements of one row, each exactly once; called from many threads.
  FunctionRef<void(int64_t product, int64_t row, int64_t column, int64_t count, const Sum* sums)>
      store;
};

// Sum is double (for all floating types) or uint64_t (for integers of any kind, sign-extended: sums
// modulo 2^64, so that integers wrap as they do in C). Equal problems give equal bits, whatever the
// number of threads. `call` gives threads and memory.
template <class Sum>
void multiply(const KernelCall& call, const MatrixProduct<Sum>& problem);

extern template void multiply<double>(const KernelCall&, const MatrixProduct<double>&);
extern template void multiply<uint64_t>(const KernelCall&, const MatrixProduct<uint64_t>&);

}  // namespace tessera::ops
