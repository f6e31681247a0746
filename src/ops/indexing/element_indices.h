// Shared by GatherElements and ScatterElements. The indices have the data's rank; each replaces the
// coordinate along one axis of its own position.
#pragma once

#include "ops/op.h"
#include "ops/strided_view.h"

namespace tessera::ops {

// fail()s at input 1 unless `indices` has the rank of `data` and, except along attribute 'axis', no
// larger dimensions.
void check_element_indices(const InferContext& context, const Shape& data, const Shape& indices);

// The data element that an index refers to is at (the offset of the index's position in `view`) +
// index * stride.
struct IndexedAxis {
  int64_t dim = 0;  // of the data along the axis
  int64_t stride = 0;
  StridedView view;  // one element per index
};

// The axis of a call whose inputs 0 and 1 are the data and the indices.
IndexedAxis indexed_axis(const KernelCall& call);

}  // namespace tessera::ops
