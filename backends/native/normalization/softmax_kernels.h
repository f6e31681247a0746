// The loops of softmax.cc, compiled for every instruction set that Highway supports.
#pragma once

#include <cstdint>

namespace tessera::native {

// The operations that are applied to a row first: x * scale + addend, if there is an addend.
struct RowInput {
  float scale = 1;
  const float* addend = nullptr;  // for the first row
  int64_t addend_stride = 0;      // between rows
};

// `to` may be equal to `from`. Rows whose largest element is infinite become NaN, as exp(-inf -
// -inf) is.
struct SoftmaxLoops {
  // For `rows` contiguous rows of `length` elements.
  void (*rows)(const float* from, float* to, int64_t rows, int64_t length, const RowInput& input);
  // For `width` neighbouring columns of `length` elements, which are `stride` apart.
  void (*columns)(const float* from, float* to, int64_t length, int64_t stride, int64_t width);
};

// The largest number of columns of one call.
inline constexpr int64_t kMaxSoftmaxColumns = 256;

// For the best instruction set of this processor.
SoftmaxLoops find_softmax_loops(bool is_log);

}  // namespace tessera::native
