// Strided and indexed copies: the kernels of Slice, Transpose, Expand, Tile, DepthToSpace and
// others. They depend only on the size of the element type.
#pragma once

#include <memory_resource>
#include <span>
#include <vector>

#include "base/containers/small_vector.h"
#include "ops/op.h"

namespace tessera::ops {

// A result of `dims` whose element at coordinates c is the source's element number offset +
// sum(c[i] * strides[i]). Strides may be zero or negative.
//
// Kernels pass `memory`, here and below; type rules use the default.
struct StridedView {
  explicit StridedView(std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : dims(memory), strides(memory) {}
  // A copy would allocate from the default memory resource.
  StridedView(const StridedView&) = delete;
  StridedView(StridedView&&) = default;
  StridedView& operator=(const StridedView&) = delete;
  // If the memory resources differ, the elements are moved one by one.
  StridedView& operator=(StridedView&&) noexcept(false) = default;
  ~StridedView() = default;

  std::pmr::memory_resource* memory() const { return dims.get_allocator().resource(); }

  std::pmr::vector<int64_t> dims;
  std::pmr::vector<int64_t> strides;
  int64_t offset = 0;
};

// The strides of a dense row-major array; all 0 if it has no elements.
std::pmr::vector<int64_t> dense_strides(
    std::span<const int64_t> dims,
    std::pmr::memory_resource* memory = std::pmr::get_default_resource());

// The view of a whole dense array.
StridedView dense_view(std::span<const int64_t> dims,
                       std::pmr::memory_resource* memory = std::pmr::get_default_resource());

// A view of the same elements in the same order, with as few dimensions as possible, at least one.
// Uses the memory of `view`, which must have elements.
StridedView merged(const StridedView& view);

// Writes the elements that `view` selects from the first input densely to the first output.
void copy_view(const KernelCall& call, const StridedView& view);

// Selects from the tracked elements of shape arithmetic.
std::vector<Dim> view_elements(const StridedView& view, const std::vector<Dim>& source);

// Iterates over a view's source offsets in row-major order of its coordinates.
class Odometer {
 public:
  // Starts at element number `position` of the view, which must have elements.
  Odometer(const StridedView& view, int64_t position);

  int64_t offset() const { return offset_; }
  void advance();

 private:
  const StridedView& view_;
  SmallVector<int64_t> coordinates_;
  int64_t offset_ = 0;
};

// For each axis and each coordinate of the result, the coordinate of the source; if negative, the
// result has `fill` there. For Pad and nearest-neighbour resizing.
using SourceTables = std::pmr::vector<std::pmr::vector<int64_t>>;
// Copies from the first input to the first output; `fill` is the bytes of one element.
void copy_indexed(const KernelCall& call, const SourceTables& tables, const void* fill);

// The kernel of ops that only change dimensions.
void run_view(const KernelCall& call);

}  // namespace tessera::ops
