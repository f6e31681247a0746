// Holds the shape of an input against the one that the other inputs imply.
#pragma once

#include "ops/op.h"

namespace tessera::ops {

// Whether the two can be the same shape, as far as their dimensions are known.
bool can_be_equal(const Shape& left, const Shape& right);

// fail()s at input `index` unless its shape can be `expected`. An omitted input and one of unknown
// rank pass.
void check_shape(const InferContext& context, size_t index, const Shape& expected);

}  // namespace tessera::ops
