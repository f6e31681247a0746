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

}  // namespace tessera::verification
