// Indices and lists that arrive as tensors of int32 or int64, read by kernels.
#pragma once

#include <string>
#include <vector>

#include "ops/op.h"

namespace tessera::ops {

inline int64_t integer_at(const TensorView& view, int64_t position) {
  if (view.type == DataType::Int32) return static_cast<const int32_t*>(view.data)[position];
  return static_cast<const int64_t*>(view.data)[position];
}

inline std::vector<int64_t> integers_of(const TensorView& view) {
  std::vector<int64_t> integers;
  integers.reserve(static_cast<size_t>(view.elements));
  for (int64_t index = 0; index < view.elements; ++index) {
    integers.push_back(integer_at(view, index));
  }
  return integers;
}

// The index at `position`, counted from the front of an axis of `dim` elements. call.fail()s where
// it lies outside.
inline int64_t index_at(const KernelCall& call, const TensorView& indices, int64_t position,
                        int64_t dim) {
  const int64_t index = integer_at(indices, position);
  if (index < -dim || index >= dim) {
    call.fail("expected an index in [" + std::to_string(-dim) + ", " + std::to_string(dim) +
              "), found " + std::to_string(index));
  }
  return index < 0 ? index + dim : index;
}

}  // namespace tessera::ops
