// The lines of a tensor along one axis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tessera::native {

// [outer, length, stride] elements: the elements of a line are `stride` apart, which is also the
// number of neighbouring lines.
struct LineShape {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t stride = 1;
};

// `axis` is not used for a scalar.
inline LineShape line_shape_of(std::span<const int64_t> dims, size_t axis) {
  LineShape shape;
  for (size_t position = 0; position < dims.size(); ++position) {
    (position < axis    ? shape.outer
     : position == axis ? shape.length
                        : shape.stride) *= dims[position];
  }
  return shape;
}

}  // namespace tessera::native
