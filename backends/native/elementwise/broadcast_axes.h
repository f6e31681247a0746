// The axes of a loop over a result and operands that broadcast to it. They own no memory, so that a
// kernel can find them in a run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "copy/storage_axes.h"

namespace tessera::native {

inline constexpr size_t kMaxOperands = 8;
// After merging. Models rarely need more than three.
inline constexpr size_t kMaxLoopAxes = 8;

// An operand that broadcasts to a result.
struct BroadcastOperand {
  // With the rank of the result. Only the dimensions of 1 count: each other one is that of the
  // result, whatever sizes it has.
  std::vector<int64_t> dims;
  bool is_row_major = false;  // else it has the layout of the result
  bool is_padded = false;     // row-major, but zeros fill its last block of channels

  bool is_repeated(size_t axis) const { return dims[axis] == 1; }
};

// Axes of the storage of the result. A layout with blocks of channels has one more than there are
// dimensions, and its padding counts as elements. Axes of one element are left out, and
// neighbouring axes are merged if they are contiguous for all operands.
struct LoopAxes {
  // Of each axis, the innermost first: the number of elements, and the distance of neighbours in an
  // operand, in elements; 0 if the operand has one element along the axis.
  using Axes = std::array<int64_t, kMaxLoopAxes>;

  size_t count = 0;  // at least 1
  Axes sizes = {};
  std::array<Axes, kMaxOperands> strides = {};

  int64_t width() const { return sizes[0]; }
  int64_t rows() const { return count > 1 ? sizes[1] : 1; }
};

// The axes for a result of these sizes, none of which may be 0, stored in `order`. Throws Failure
// (TESSERA_UNSUPPORTED) if there are too many. A single axis remains one, with the same strides, if
// sizes change but none becomes 1 or stops being 1, and checked_elements() is 0 for each operand.
//
// If a row-major operand has channels, but neither zeros nor whole blocks of channels fill its last
// block, the loop reads past the last channel: see checked_elements().
LoopAxes loop_axes(const StorageOrder& order, std::span<const int64_t> dims,
                   std::span<const BroadcastOperand> operands);

// The number of elements of an operand past whose end the loop would read, so that each position
// must be checked; 0 for all other operands.
int64_t checked_elements(const StorageOrder& order, std::span<const int64_t> dims,
                         const BroadcastOperand& operand);

}  // namespace tessera::native
