// What the kernels on sparse values share: ports, prices, and the numbers of rows.
#pragma once

#include <cstdint>
#include <string>

#include "tessera/backend.h"

namespace tessera::native {

// A value as its sparse form has it. Rows are those of axis 0; width is the elements of each.
struct SparseShape {
  int32_t format = TESSERA_DENSE;
  int64_t capacity = 0;  // elements (csr) or rows (row_sparse)
  int64_t rows = 0;
  int64_t width = 0;
  // Elements that can be stored.
  double stored() const {
    return static_cast<double>(capacity) *
           (format == TESSERA_ROW_SPARSE ? static_cast<double>(width) : 1.0);
  }
};

// The sparse form of a value of known size; format TESSERA_DENSE where it has none.
SparseShape sparse_shape(const plugin::Value& value);

// "csr" or "row_sparse".
const char* layout_of(const SparseShape& shape);

// A candidate for `node` whose input `input` is in its sparse layout and nothing else is.
plugin::Candidate sparse_candidate(const plugin::Node& node, size_t input);

// The least time for so many operations on stored elements, whose places are only known when they
// are read, and for so many bytes of memory.
double sparse_seconds(const plugin::ProposeContext& context, double flops, double bytes);

// Throws Failure (TESSERA_INVALID_ARGUMENT) where `stored` is more than there is room for.
void check_capacity(int64_t stored, int64_t capacity);

}  // namespace tessera::native
