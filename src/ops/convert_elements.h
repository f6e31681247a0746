// Converts elements between types: for Cast, and for kernels that compute in one type and support
// others block by block.
#pragma once

#include <cstdint>

#include "base/tensor/small_types.h"
#include "tessera/data_type.h"

namespace tessera::ops {

// The number of elements that kernels convert at once: three such buffers fit the L1 cache.
inline constexpr int64_t kConvertBlock = 512;

// Converts `count` elements. Neither type is Undefined or String; the ranges do not overlap.
//   to bool:             true if the element is not zero (so for NaN too).
//   integer to integer:  the lowest bits, as in two's complement.
//   to floating:         the nearest value, ties to even; overflow gives infinity.
//   floating to integer: truncated towards zero, NaN gives 0. ONNX leaves overflow open. Here int32
//                        and int64 saturate; other types take the lowest bits of the int64, so -1
//                        is 255 as uint8 (as in ONNX Runtime); uint64 reaches its maximum.
//   to int4, int2 and the unsigned ones: the lowest bits of the int8 that it would be.
//   to small floats:     as `rounding` says; base/tensor/small_types.h. Elements of the same type
//                        are copied.
void convert_elements(DataType from, const void* source, DataType to, void* target, int64_t count,
                      SmallFloatRounding rounding = {});

}  // namespace tessera::ops
