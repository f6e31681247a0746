// Random input tensors that are identical on every machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tessera/tensor.h"

namespace tessera::cli {

// A tensor for the input called `name`: floats from the normal distribution with mean 0 and
// standard deviation 1, bools uniform, integers uniform in [0, index_limit), or in [0, 10) without
// a limit. Equal arguments give equal bits on every platform: the function uses only operations
// that IEEE 754 rounds correctly, and no distributions or mathematical functions of the C++
// library. Throws Unsupported for a type without elements.
Tensor random_tensor(DataType type, const std::vector<int64_t>& dims, uint64_t seed,
                     std::string_view name, std::optional<int64_t> index_limit = std::nullopt);

}  // namespace tessera::cli
