// Random fused groups with random inputs, the same for the same seed on all machines.
#pragma once

#include "group_runner.h"

namespace tessera::jit {

struct RandomCase {
  plugin::FusedGroup group;
  Tensors inputs;
  RunSettings settings;
};

// Elementwise operations of all types, broadcasts, transposed and strided accesses, all layouts.
RandomCase random_elementwise_case(uint32_t seed);

// Reductions over one axis or more, one after another, in all forms of loops. Sums and products are
// of small integers, so their order does not matter.
RandomCase random_reduction_case(uint32_t seed);

// Elements of any type: for floats, a third of them NaN, infinities, zeros, denormals.
std::string random_elements(std::mt19937& random, int32_t data_type, int64_t bytes);

}  // namespace tessera::jit
