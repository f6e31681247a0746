// Matrices of any strides as operands of matmul/matrix_product.h, and products whose results a
// fused op changes before they are rounded.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "base/threads/function_ref.h"
#include "ops/convert_element.h"
#include "ops/convert_elements.h"
#include "ops/matmul/matrix_product.h"

namespace tessera::ops {

struct StridedMatrix {
  int64_t row_stride = 0;
  int64_t column_stride = 1;
};

// Reads lines of an operand; they run along the axis with the smaller stride.
template <class T>
struct ReadStrided {
  const T* elements = nullptr;
  StridedMatrix matrix;
  std::span<const int64_t> starts = {};  // of each product; empty: 0
  bool is_left = false;

  bool reads_rows() const { return matrix.column_stride <= matrix.row_stride; }
  // The depth runs along the rows of the left matrix, and along the columns of the right one.
  bool runs_along_depth() const { return reads_rows() == is_left; }

  void operator()(int64_t product, int64_t line, int64_t begin, int64_t count,
                  double* target) const {
    const int64_t start = starts.empty() ? 0 : starts[static_cast<size_t>(product)];
    const int64_t step = reads_rows() ? matrix.column_stride : matrix.row_stride;
    const int64_t line_stride = reads_rows() ? matrix.row_stride : matrix.column_stride;
    const T* source = elements + start + line * line_stride + begin * step;
    for (int64_t index = 0; index < count; ++index) target[index] = to_double(source[index * step]);
  }
};

struct ProductSizes {
  int64_t count = 1;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
};

// Changes sums of one row of all products, numbered in the order of the output, from `column` on.
using FinishRow = FunctionRef<void(int64_t row, int64_t column, std::span<double> sums)>;

// Stores `count` products one after another in `output`.
template <class T>
void multiply_strided(const KernelCall& call, const ProductSizes& sizes, const ReadStrided<T>& left,
                      const ReadStrided<T>& right, T* output, FinishRow finish) {
  const auto store = [&](int64_t which, int64_t row, int64_t column, int64_t count,
                         const double* sums) {
    const int64_t line = which * sizes.rows + row;
    std::array<double, kConvertBlock> block;
    for (int64_t done = 0; done < count; done += kConvertBlock) {
      const int64_t length = std::min(kConvertBlock, count - done);
      std::copy_n(sums + done, length, block.begin());
      finish(line, column + done, std::span(block).first(static_cast<size_t>(length)));
      std::transform(block.begin(), block.begin() + length,
                     output + line * sizes.columns + column + done, from_double<T>);
    }
  };
  multiply_matrices<double>(call, {.count = sizes.count,
                                   .rows = sizes.rows,
                                   .columns = sizes.columns,
                                   .depth = sizes.depth,
                                   .left = {left, left.runs_along_depth()},
                                   .right = {right, right.runs_along_depth()},
                                   .store = store});
}

}  // namespace tessera::ops
