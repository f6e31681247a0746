// Buffers in the sparse layouts csr and row_sparse, in C++: see tessera_sparse_header. Included by
// tessera/backend.h, which authors include. Nothing here allocates or throws.
#pragma once

#include <cstdint>

#include "tessera/backend_abi.h"

namespace tessera::plugin {

// The positions of the arrays in a sparse buffer, and its size; bytes is -1 if the size exceeds 64
// bits.
struct SparseParts {
  int64_t offsets_at = 0;
  int64_t indices_at = 0;
  int64_t values_at = 0;
  int64_t bytes = -1;
};

namespace detail {

// Adds an array of `count` entries of `size` bytes at `end`, and moves `end` to the next aligned
// position after the array. Returns false if that exceeds 64 bits.
inline bool add_sparse_part(int64_t count, int64_t size, int64_t& begin, int64_t& end) {
  int64_t bytes = 0;
  begin = end;
  if (__builtin_mul_overflow(count, size, &bytes) || __builtin_add_overflow(end, bytes, &end) ||
      __builtin_add_overflow(end, int64_t{TESSERA_ALIGNMENT_BYTES - 1}, &end)) {
    return false;
  }
  end = end / TESSERA_ALIGNMENT_BYTES * TESSERA_ALIGNMENT_BYTES;
  return true;
}

template <class T>
T* sparse_part(void* buffer, int64_t at) {
  // NOLINTNEXTLINE(bugprone-casting-through-void)
  return static_cast<T*>(static_cast<void*>(static_cast<char*>(buffer) + at));
}

template <class T>
const T* sparse_part(const void* buffer, int64_t at) {
  // NOLINTNEXTLINE(bugprone-casting-through-void)
  return static_cast<const T*>(static_cast<const void*>(static_cast<const char*>(buffer) + at));
}

}  // namespace detail

// All arguments must be at least 0.
inline SparseParts csr_parts(int64_t rows, int64_t capacity, int64_t element_bytes) {
  SparseParts parts;
  int64_t end = sizeof(tessera_sparse_header);
  const bool fits = rows < INT64_MAX &&
                    detail::add_sparse_part(rows + 1, sizeof(int64_t), parts.offsets_at, end) &&
                    detail::add_sparse_part(capacity, sizeof(int32_t), parts.indices_at, end) &&
                    detail::add_sparse_part(capacity, element_bytes, parts.values_at, end);
  if (fits) parts.bytes = end;
  return parts;
}

inline SparseParts row_sparse_parts(int64_t capacity, int64_t row_bytes) {
  SparseParts parts;
  int64_t end = sizeof(tessera_sparse_header);
  const bool fits = detail::add_sparse_part(capacity, sizeof(int64_t), parts.indices_at, end) &&
                    detail::add_sparse_part(capacity, row_bytes, parts.values_at, end);
  if (fits) parts.bytes = end;
  return parts;
}

// A csr buffer to read.
struct CsrView {
  explicit CsrView(const void* buffer)
      : header(static_cast<const tessera_sparse_header*>(buffer)),
        offsets(detail::sparse_part<int64_t>(buffer, header->offsets_at)),
        columns(detail::sparse_part<int32_t>(buffer, header->indices_at)),
        values(detail::sparse_part<char>(buffer, header->values_at)) {}

  int64_t stored() const { return header->stored; }
  template <class T>
  const T* values_as() const {
    return static_cast<const T*>(values);
  }

  const tessera_sparse_header* header;
  const int64_t* offsets;  // one more than rows
  const int32_t* columns;  // stored()
  const void* values;      // stored()
};

// A row_sparse buffer to read.
struct RowSparseView {
  explicit RowSparseView(const void* buffer)
      : header(static_cast<const tessera_sparse_header*>(buffer)),
        rows(detail::sparse_part<int64_t>(buffer, header->indices_at)),
        values(detail::sparse_part<char>(buffer, header->values_at)) {}

  int64_t stored() const { return header->stored; }
  template <class T>
  const T* values_as() const {
    return static_cast<const T*>(values);
  }

  const tessera_sparse_header* header;
  const int64_t* rows;  // stored(), ascending
  const void* values;   // stored() rows
};

// A csr buffer to fill: the constructor writes its header. Set `header->stored` last, to at most
// header->capacity.
struct CsrTarget {
  CsrTarget(void* buffer, int64_t rows, int64_t capacity, int64_t element_bytes)
      : header(static_cast<tessera_sparse_header*>(buffer)) {
    const SparseParts parts = csr_parts(rows, capacity, element_bytes);
    *header = {};
    header->format = TESSERA_CSR;
    header->capacity = capacity;
    header->offsets_at = parts.offsets_at;
    header->indices_at = parts.indices_at;
    header->values_at = parts.values_at;
    offsets = detail::sparse_part<int64_t>(buffer, parts.offsets_at);
    columns = detail::sparse_part<int32_t>(buffer, parts.indices_at);
    values = detail::sparse_part<char>(buffer, parts.values_at);
  }

  template <class T>
  T* values_as() const {
    return static_cast<T*>(values);
  }

  tessera_sparse_header* header;
  int64_t* offsets = nullptr;
  int32_t* columns = nullptr;
  void* values = nullptr;
};

// Same as CsrTarget, for a row_sparse buffer.
struct RowSparseTarget {
  RowSparseTarget(void* buffer, int64_t capacity, int64_t row_bytes)
      : header(static_cast<tessera_sparse_header*>(buffer)) {
    const SparseParts parts = row_sparse_parts(capacity, row_bytes);
    *header = {};
    header->format = TESSERA_ROW_SPARSE;
    header->capacity = capacity;
    header->indices_at = parts.indices_at;
    header->values_at = parts.values_at;
    rows = detail::sparse_part<int64_t>(buffer, parts.indices_at);
    values = detail::sparse_part<char>(buffer, parts.values_at);
  }

  template <class T>
  T* values_as() const {
    return static_cast<T*>(values);
  }

  tessera_sparse_header* header;
  int64_t* rows = nullptr;
  void* values = nullptr;
};

}  // namespace tessera::plugin
