// The loops of softmax.cc, compiled for every instruction set that the processor may have.
#pragma once

#include <cstdint>

namespace tessera::native {

// What is done to a row before: x * scale + addend, where there is an addend.
struct RowInput {
  float scale = 1;
  const float* addend = nullptr;  // of the first row
  int64_t addend_stride = 0;      // from row to row
};

// `to` may be `from`. Rows without a greatest finite number become NaN, as exp(-inf - -inf) is.
struct SoftmaxLoops {
  // `rows` rows of `length` neighbours, one behind the other.
  void (*rows)(const float* from, float* to, int64_t rows, int64_t length, const RowInput& input);
  // Down the columns: `length` numbers `stride` apart, for `width` neighbouring columns.
  void (*columns)(const float* from, float* to, int64_t length, int64_t stride, int64_t width);
};

// Columns that one call takes at most.
inline constexpr int64_t kMostSoftmaxColumns = 256;

// For the best instruction set of this processor.
SoftmaxLoops find_softmax_loops(bool is_log);

}  // namespace tessera::native
