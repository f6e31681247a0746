// Compression and expansion of sparse rows, for conversions. tessera/backend_sparse.h describes the
// buffers.
#pragma once

#include <cstdint>

#include "tessera/backend_sparse.h"

namespace tessera {

// Counts the elements of `size` bytes (1, 2, 4 or 8) whose bits are not all zero.
int64_t count_nonzero(const void* elements, int64_t count, int64_t size);

// Writes columns and values of the elements of a row whose bits are not all zero.
void compress_row(const void* row, int64_t count, int64_t size, int32_t* columns, void* values);

// Writes rows [begin, end) of the matrix with `columns` columns to `dense`, which has all rows.
void expand_csr(const plugin::CsrView& view, int64_t columns, int64_t size, int64_t begin,
                int64_t end, void* dense);

// Writes the stored rows [begin, end) to `dense`, which has `rows` rows of `row_bytes`, and zeros
// to the rows between each stored row and the one before it. If `end` is the last stored row, also
// writes zeros to all rows after it; without stored rows, [0, 0) clears everything.
void expand_row_sparse(const plugin::RowSparseView& view, int64_t rows, int64_t row_bytes,
                       int64_t begin, int64_t end, void* dense);

}  // namespace tessera
