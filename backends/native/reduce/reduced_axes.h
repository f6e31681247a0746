// The axes of a tensor that is reduced. They own no memory, so that a kernel can find them in a
// run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "tessera/backend.h"

namespace tessera::native {

// One axis of a dense tensor.
struct ReducedAxis {
  int64_t length = 1;
  bool is_reduced = false;
};

// The axes of a dense tensor in the order of memory. Neighbours that are both reduced or both kept
// are one axis. Sizes that do not change whether a length is 0, 1 or larger give as many axes.
class ReducedAxes {
 public:
  static constexpr size_t kMaxAxes = 16;

  // Adds the next axis, which is left out if it has one element. Throws Failure
  // (TESSERA_UNSUPPORTED) if there are too many.
  void add(int64_t length, bool is_reduced) {
    if (length == 1) return;
    if (!is_empty() && back().is_reduced == is_reduced) {
      axes_[count_ - 1].length *= length;
      return;
    }
    if (count_ == kMaxAxes) {
      throw plugin::Failure(TESSERA_UNSUPPORTED,
                            "takes up to " + std::to_string(kMaxAxes) +
                                " axes that are reduced and kept in turns only");
    }
    axes_[count_++] = {length, is_reduced};
  }

  bool is_empty() const { return count_ == 0; }
  // The innermost axis. Requires that there is one.
  const ReducedAxis& back() const { return axes_[count_ - 1]; }
  void remove_back() { --count_; }

 private:
  size_t count_ = 0;
  std::array<ReducedAxis, kMaxAxes> axes_ = {};
};

// Kept or reduced axes with their strides, from the innermost one to the outermost one.
struct StridedAxes {
  size_t count = 0;
  std::array<int64_t, ReducedAxes::kMaxAxes> lengths = {};
  std::array<int64_t, ReducedAxes::kMaxAxes> strides = {};

  void add(int64_t length, int64_t stride) {
    lengths[count] = length;
    strides[count++] = stride;
  }
  int64_t elements() const {
    int64_t product = 1;
    for (size_t axis = 0; axis < count; ++axis) product *= lengths[axis];
    return product;
  }
  // The offset of an element of these axes in row-major order.
  int64_t offset(int64_t index) const {
    int64_t offset = 0;
    for (size_t axis = 0; axis < count; ++axis) {
      offset += index % lengths[axis] * strides[axis];
      index /= lengths[axis];
    }
    return offset;
  }
};

}  // namespace tessera::native
