// Inputs made of random numbers that are the same on every machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tessera/tensor.h"

namespace tessera::cli {

// A tensor for the input called `name`: floats from the normal distribution with mean 0 and
// deviation 1, bools true or false alike, integers uniform in [0, index_limit), or in [0, 10)
// without a limit. Equal arguments give equal bits everywhere: nothing of the C++ library's
// distributions or mathematics is used, which differ between platforms, only operations that
// IEEE 754 rounds correctly. Throws Unsupported for a type without elements.
Tensor random_tensor(DataType type, const std::vector<int64_t>& dims, uint64_t seed,
                     std::string_view name, std::optional<int64_t> index_limit = std::nullopt);

}  // namespace tessera::cli
