// Elements of one type to elements of another: what Cast does, and how kernels that compute in
// one type serve the others, a block at a time.
#pragma once

#include <cstdint>

#include "tessera/data_type.h"

namespace tessera::ops {

// Elements that kernels convert at once: small enough for three buffers to stay in the first cache.
inline constexpr int64_t kConvertBlock = 512;

// Converts `count` elements. Neither type is Undefined or String; the ranges do not overlap.
//   to bool:             whether the element is other than zero (NaN is).
//   integer to integer:  the lowest bits count, as in two's complement.
//   to floating:         the nearest value, ties to even; too large becomes infinity.
//   floating to integer: truncated towards zero, NaN gives 0. ONNX leaves the rest open. Here int32
//                        and int64 saturate; other types take the lowest bits of the int64, so -1
//                        is 255 as uint8 (ONNX Runtime does that too); uint64 reaches its maximum.
void convert_elements(DataType from, const void* source, DataType to, void* target, int64_t count);

}  // namespace tessera::ops
