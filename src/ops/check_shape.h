// Checks the shape of an input against the shape that other inputs imply.
#pragma once

#include "ops/op.h"

namespace tessera::ops {

// Whether the two shapes can be equal, as far as their dimensions are known.
bool can_be_equal(const Shape& left, const Shape& right);

// fail()s at input `index` if its shape cannot be `expected`. Omitted inputs and inputs of unknown
// rank pass.
void check_shape(const InferContext& context, size_t index, const Shape& expected);

}  // namespace tessera::ops
