// Shared by the ops of ONNX Runtime's own domain: checks of shapes, and sizes of rows.
#pragma once

#include "ops/check_shape.h"
#include "ops/domains.h"
#include "ops/op.h"

namespace tessera::ops {

// fail_input()s if the input's rank is known and is not `rank`. Omitted inputs pass.
void check_rank(const InferContext& context, size_t index, size_t rank);

// fail_input()s unless the input is a list with an element for each index of the last axis of
// `shape`. Omitted inputs pass.
void check_columns(const InferContext& context, size_t index, const Shape& shape);

// The length of the last axis; 1 for a scalar.
inline int64_t column_count(std::span<const int64_t> dims) {
  return dims.empty() ? 1 : dims.back();
}

// The number of rows of one task of a parallel loop.
inline int64_t row_grain(int64_t columns) { return kElementGrain / (columns + 1) + 1; }

}  // namespace tessera::ops
