// What GatherElements and ScatterElements share: indices of the data's rank, each of which replaces
// one coordinate of its own place, that along `axis`.
#pragma once

#include "ops/op.h"
#include "ops/strided_view.h"

namespace tessera::ops {

// fail()s at input 1 unless `indices` has the rank of `data` and, outside the attribute 'axis', at
// most its dimensions.
void check_element_indices(const InferContext& context, const Shape& data, const Shape& indices);

// An index belongs to the element of the data at its place's offset in `view` + index * stride.
struct IndexedAxis {
  int64_t dim = 0;  // of the data along the axis
  int64_t stride = 0;
  StridedView view;  // one element for each index
};

// That of a call whose inputs 0 and 1 are the data and the indices.
IndexedAxis indexed_axis(const KernelCall& call);

}  // namespace tessera::ops
