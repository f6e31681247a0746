#include "base/tensor/sparse_storage.h"

#include <algorithm>
#include <cstring>

#include "base/errors/check.h"

namespace tessera {
namespace {

// Calls `body` with an unsigned integer of `size` bytes, because only zero bits matter here.
template <class Body>
auto with_bits(int64_t size, const Body& body) {
  switch (size) {
    case 1:
      return body(uint8_t{});
    case 2:
      return body(uint16_t{});
    case 4:
      return body(uint32_t{});
    default:
      TESSERA_CHECK(size == 8, "elements of sparse tensors have a fixed size");
      return body(uint64_t{});
  }
}

void clear(void* dense, int64_t row_bytes, int64_t first, int64_t last) {
  char* rows = static_cast<char*>(dense);
  std::fill(rows + first * row_bytes, rows + std::max(first, last) * row_bytes, char{0});
}

}  // namespace

int64_t count_nonzero(const void* elements, int64_t count, int64_t size) {
  return with_bits(size, [&](auto bits) {
    const auto* from = static_cast<const decltype(bits)*>(elements);
    int64_t found = 0;
    for (int64_t index = 0; index < count; ++index) found += from[index] != 0 ? 1 : 0;
    return found;
  });
}

void compress_row(const void* row, int64_t count, int64_t size, int32_t* columns, void* values) {
  with_bits(size, [&](auto bits) {
    const auto* from = static_cast<const decltype(bits)*>(row);
    auto* to = static_cast<decltype(bits)*>(values);
    int64_t stored = 0;
    for (int64_t index = 0; index < count; ++index) {
      if (from[index] == 0) continue;
      columns[stored] = static_cast<int32_t>(index);
      to[stored++] = from[index];
    }
  });
}

void expand_csr(const plugin::CsrView& view, int64_t columns, int64_t size, int64_t begin,
                int64_t end, void* dense) {
  clear(dense, columns * size, begin, end);
  with_bits(size, [&](auto bits) {
    using Bits = decltype(bits);
    const Bits* values = view.values_as<Bits>();
    for (int64_t row = begin; row < end; ++row) {
      Bits* to = static_cast<Bits*>(dense) + row * columns;
      for (int64_t at = view.offsets[row]; at < view.offsets[row + 1]; ++at) {
        to[view.columns[at]] = values[at];
      }
    }
  });
}

void expand_row_sparse(const plugin::RowSparseView& view, int64_t rows, int64_t row_bytes,
                       int64_t begin, int64_t end, void* dense) {
  int64_t next = begin == 0 ? 0 : view.rows[begin - 1] + 1;
  for (int64_t at = begin; at < end; ++at) {
    const int64_t row = view.rows[at];
    clear(dense, row_bytes, next, row);
    if (row_bytes > 0) {
      std::memcpy(static_cast<char*>(dense) + row * row_bytes,
                  view.values_as<char>() + at * row_bytes, static_cast<size_t>(row_bytes));
    }
    next = row + 1;
  }
  if (end == view.stored()) clear(dense, row_bytes, next, rows);
}

}  // namespace tessera
