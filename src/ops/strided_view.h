// Copies that are only a matter of where each element comes from: the kernels of Slice, Transpose,
// Expand, Tile, DepthToSpace and others. Nothing here depends on the element type but its size.
#pragma once

#include <span>
#include <vector>

#include "ops/op.h"

namespace tessera::ops {

// A result of `dims` whose element at coordinates c is the source's element number
// offset + sum(c[i] * strides[i]). Strides may be zero or negative.
struct StridedView {
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;
  int64_t offset = 0;
};

// The strides of a dense row-major array; all 0 where it has no elements.
std::vector<int64_t> dense_strides(std::span<const int64_t> dims);

// The view of a whole dense array.
StridedView dense_view(std::span<const int64_t> dims);

// The same elements in the same order with as few dimensions as describe them, at least one. The
// view must have elements.
StridedView merged(const StridedView& view);

// Writes the elements of `view` over `source` to `target`, densely.
void copy_view(const StridedView& view, DataType type, const void* source, void* target,
               ThreadPool& pool);

// The same for followed elements of shape arithmetic.
std::vector<Dim> view_elements(const StridedView& view, const std::vector<Dim>& source);

// Walks a view's source offsets in row-major order of its coordinates.
class Odometer {
 public:
  // Stands at element number `position` of the view, which must have elements.
  Odometer(const StridedView& view, int64_t position);

  int64_t offset() const { return offset_; }
  void advance();

 private:
  const StridedView& view_;
  std::vector<int64_t> coordinates_;
  int64_t offset_ = 0;
};

// For each axis and each coordinate of the result, the coordinate of the source; a negative one
// means that the result has `fill` there. The kernels of Pad and of nearest-neighbour resizing.
using SourceTables = std::vector<std::vector<int64_t>>;
// `fill` is the bytes of one element.
void copy_indexed(const SourceTables& tables, const TensorView& source,
                  const MutableTensorView& target, const void* fill, ThreadPool& pool);

// The kernel of ops that give the same elements under other dimensions.
void run_view(const KernelCall& call);

}  // namespace tessera::ops
