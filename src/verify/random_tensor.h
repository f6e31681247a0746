// Pseudo-random tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/tensor.h"

namespace tessera::verification {

// Numbers are small, of both signs unless `is_positive`: floating-point ones in [-2, 2) or [0.5,
// 2), integers in [-5, 5] or [1, 5]. Equal arguments give equal elements.
Tensor random_tensor(DataType type, std::vector<int64_t> dims, bool is_positive, uint64_t seed);

// Uniformly random bits (true or false for bool).
Tensor random_bits(DataType type, std::vector<int64_t> dims, uint64_t seed);

// Ranges of floating-point elements on which kernels err that are right on those of
// random_tensor().
enum class ValueRange : uint8_t {
  Tails,      // magnitudes of many orders, both signs, and zeros of both signs
  LargeMean,  // close together and far from zero
};

// `tensor` with elements of `range`, positive if all of its elements are. Equal arguments give
// equal elements. An empty tensor if the elements are not floating-point.
Tensor in_range(const Tensor& tensor, ValueRange range, uint64_t seed);

}  // namespace tessera::verification
