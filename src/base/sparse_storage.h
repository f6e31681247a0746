// The elements of sparse buffers, row by row: what conversions are made of. The buffers themselves
// are described in tessera/backend_sparse.h.
#pragma once

#include <cstdint>

#include "tessera/backend_sparse.h"

namespace tessera {

// Elements of `size` bytes (1, 2, 4 or 8) among `count` that are not zero bits.
int64_t count_nonzero(const void* elements, int64_t count, int64_t size);

// Writes columns and values of the elements of a row that are not zero bits.
void compress_row(const void* row, int64_t count, int64_t size, int32_t* columns, void* values);

// Writes rows [begin, end) of the matrix with `columns` columns to `dense`, which has all rows.
void expand_csr(const plugin::CsrView& view, int64_t columns, int64_t size, int64_t begin,
                int64_t end, void* dense);

// Writes the stored rows [begin, end) to `dense`, which has `rows` rows of `row_bytes`, and zeros
// to the rows between each and the stored one before it. Where `end` is the last stored row, zeros
// to all rows behind it too; without stored rows [0, 0) clears everything.
void expand_row_sparse(const plugin::RowSparseView& view, int64_t rows, int64_t row_bytes,
                       int64_t begin, int64_t end, void* dense);

}  // namespace tessera
