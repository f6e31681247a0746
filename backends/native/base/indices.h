// Indices that are only known when a kernel runs.
#pragma once

#include <cstdint>
#include <string>

#include "tessera/backend.h"

namespace tessera::native {

// Throws Failure (TESSERA_INVALID_ARGUMENT) if `index` is outside of an axis of `dim` elements,
// from whose end negative ones count.
inline void check_index(int64_t index, int64_t dim) {
  if (index >= -dim && index < dim) return;
  throw plugin::Failure(TESSERA_INVALID_ARGUMENT, "expected an index in [" + std::to_string(-dim) +
                                                      ", " + std::to_string(dim) + "), found " +
                                                      std::to_string(index));
}

// Reads int32 and int64 tensors through one interface.
class Indices {
 public:
  explicit Indices(const plugin::Buffer& buffer)
      : data_(buffer.data), is_wide_(buffer.data_type == TESSERA_INT64) {}

  int64_t operator[](int64_t position) const {
    return is_wide_ ? static_cast<const int64_t*>(data_)[position]
                    : static_cast<const int32_t*>(data_)[position];
  }

  // The index at `position`, counted from the front of an axis of `dim` elements. Throws Failure
  // (TESSERA_INVALID_ARGUMENT) if it is out of range.
  int64_t at(int64_t position, int64_t dim) const {
    const int64_t index = (*this)[position];
    check_index(index, dim);
    return index < 0 ? index + dim : index;
  }

 private:
  const void* data_;
  bool is_wide_;
};

inline bool is_index_type(int32_t data_type) {
  return data_type == TESSERA_INT32 || data_type == TESSERA_INT64;
}

}  // namespace tessera::native
