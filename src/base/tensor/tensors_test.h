// Tensors with given elements, and the elements of tensors.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "tessera/tensor.h"

namespace tessera {

inline Tensor floats(std::vector<int64_t> dims, const std::vector<float>& values) {
  return Tensor::from<float>(DataType::Float32, std::move(dims), values);
}
inline Tensor floats(const std::vector<float>& values) {
  return floats({static_cast<int64_t>(values.size())}, values);
}

inline Tensor ints(std::vector<int64_t> dims, const std::vector<int64_t>& values) {
  return Tensor::from<int64_t>(DataType::Int64, std::move(dims), values);
}
inline Tensor ints(const std::vector<int64_t>& values) {
  return ints({static_cast<int64_t>(values.size())}, values);
}

inline Tensor bools(std::vector<int64_t> dims, const std::vector<uint8_t>& values) {
  return Tensor::from<uint8_t>(DataType::Bool, std::move(dims), values);
}

inline std::vector<float> values(const Tensor& tensor) {
  const auto elements = tensor.as<float>();
  return {elements.begin(), elements.end()};
}

inline std::vector<int64_t> integers(const Tensor& tensor) {
  const auto elements = tensor.as<int64_t>();
  return {elements.begin(), elements.end()};
}

inline bool has_same_bits(const Tensor& left, const Tensor& right) {
  return left.type() == right.type() && left.dims() == right.dims() &&
         std::memcmp(left.data(), right.data(), static_cast<size_t>(left.bytes())) == 0;
}

}  // namespace tessera
