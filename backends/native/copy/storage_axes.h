// The axes of a buffer in a shared layout, with their strides. layout/strided_layout.h has them for
// tensors of a graph; kernels compute them here in each run, in which nothing may be allocated.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/divide_up.h"
#include "layout/padding.h"
#include "tessera/backend.h"

namespace tessera::native {

// The order of elements in a shared layout.
struct StorageOrder {
  bool has_channels_last = false;  // axis 1 is the innermost one
  int64_t block = 1;               // channels per step along axis 1
};

// Throws Failure (TESSERA_UNSUPPORTED) if the layout is not known here.
inline StorageOrder storage_order(const std::string& layout) {
  return {.has_channels_last = layout == "nhwc",
          .block = std::max<int64_t>(channel_block(layout), 1)};
}

struct StorageAxis {
  int64_t dim;
  int64_t stride;  // in elements
};

// In layouts with blocks of channels, axis 1 counts blocks and the lanes of a block are an
// additional last axis.
struct StorageAxes {
  static constexpr size_t kMaxAxes = 32;

  size_t count = 0;
  int64_t block = 1;  // channels per step along axis 1
  // Only the first `count` are set: to clear all would take longer than to compute them.
  std::array<StorageAxis, kMaxAxes> axes;

  const StorageAxis& operator[](size_t axis) const { return axes[axis]; }
};

// The axes of `buffer`, with its own strides if it has some. Reads no elements. Throws Failure
// (TESSERA_UNSUPPORTED) if there are too many axes. Layouts with channels hold 3 to 5 axes.
inline StorageAxes storage_axes(const StorageOrder& order, const plugin::Buffer& buffer) {
  const std::span<const int64_t> dims = buffer.sizes();
  if (dims.size() >= StorageAxes::kMaxAxes) {
    throw plugin::Failure(
        TESSERA_UNSUPPORTED,
        "takes tensors of fewer than " + std::to_string(StorageAxes::kMaxAxes) + " axes only");
  }
  StorageAxes result;
  result.count = dims.size();
  for (size_t axis = 0; axis < dims.size(); ++axis) result.axes[axis].dim = dims[axis];
  if (order.block > 1) {
    result.block = order.block;
    result.axes[1].dim = divide_up(dims[1], order.block);
    result.axes[result.count++].dim = order.block;
  }
  int64_t stride = 1;
  const auto place = [&stride](StorageAxis& axis) {
    axis.stride = stride;
    stride *= axis.dim;
  };
  if (order.has_channels_last) place(result.axes[1]);
  for (size_t axis = result.count; axis-- > 0;) {
    if (!order.has_channels_last || axis != 1) place(result.axes[axis]);
  }
  if (buffer.strides == nullptr) return result;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    result.axes[axis].stride = buffer.strides[axis];
  }
  return result;
}

}  // namespace tessera::native
