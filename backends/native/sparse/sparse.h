// Functions that kernels on sparse values share: ports, estimates, and numbers of rows.
#pragma once

#include <cstdint>
#include <string>

#include "tessera/backend.h"

namespace tessera::native {

// The sparse form of a value. Rows are those of axis 0; width is the number of elements of a row.
struct SparseShape {
  int32_t format = TESSERA_DENSE;
  int64_t capacity = 0;  // elements (csr) or rows (row_sparse)
  int64_t rows = 0;
  int64_t width = 0;
  // The largest number of elements that can be stored.
  double stored() const {
    return static_cast<double>(capacity) *
           (format == TESSERA_ROW_SPARSE ? static_cast<double>(width) : 1.0);
  }
};

// The sparse form of a value of known size; format TESSERA_DENSE if it has none.
SparseShape sparse_shape(const plugin::Value& value);

// "csr" or "row_sparse".
const char* layout_of(const SparseShape& shape);

// A candidate for `node` that has only input number `input` in a sparse layout.
plugin::Candidate sparse_candidate(const plugin::Node& node, size_t input);

// The minimum time for `flops` operations on stored elements, whose positions are read from memory,
// and for reading `bytes` bytes.
double sparse_seconds(const plugin::ProposeContext& context, double flops, double bytes);

// Throws Failure (TESSERA_INVALID_ARGUMENT) if `stored` exceeds `capacity`.
void check_capacity(int64_t stored, int64_t capacity);

}  // namespace tessera::native
