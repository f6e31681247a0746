// Shared by the normalisations over the last axes that first compute the rows that they normalise.
#pragma once

#include <span>

#include "base/threads/function_ref.h"
#include "ops/normalization/normalize.h"

namespace tessera::ops {

struct RowNormalization {
  int64_t rows = 0;
  int64_t columns = 0;
  bool has_mean = true;  // false: rows are divided by the root of the mean square, x - 0
  double epsilon = 0;
  // The outputs that get the mean and the inverse of the deviation of each row; a node may omit
  // them. kNoOutput: the op has none.
  size_t mean = kNoOutput;
  size_t inverse = kNoOutput;

  static constexpr size_t kNoOutput = static_cast<size_t>(-1);
};

// For each row: read(row, line) sets `line` to its elements, which are normalised, and write(row,
// line) stores the result. Both must be thread-safe.
void normalize_lines(const KernelCall& call, const RowNormalization& normalization,
                     FunctionRef<void(int64_t row, std::span<double> line)> read,
                     FunctionRef<void(int64_t row, std::span<const double> line)> write);

}  // namespace tessera::ops
