// Tensors of bytes, for tests of quantised ops.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ops/op_test.h"

namespace tessera::ops {

inline Tensor unsigned_bytes(std::vector<int64_t> dims, const std::vector<uint8_t>& values) {
  return Tensor::from<uint8_t>(DataType::UInt8, std::move(dims), values);
}

inline Tensor signed_bytes(std::vector<int64_t> dims, const std::vector<int8_t>& values) {
  return Tensor::from<int8_t>(DataType::Int8, std::move(dims), values);
}

}  // namespace tessera::ops
