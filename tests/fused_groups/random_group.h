// Random fused groups with inputs, for tests that compare compiled kernels with
// src/codegen/expression/evaluate.h. Results are defined to the bit, except for the bits of NaN:
// sums and products of floats are exact in any order, and no reduction makes a zero of unknown
// sign.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/backend_fusion.h"

namespace tessera::codegen {

struct RandomGroup {
  plugin::FusedGroup group;
  std::vector<std::string> inputs;       // bytes of row-major tensors, by port
  std::vector<int64_t> output_elements;  // by port
};

struct RandomGroupLimits {
  int max_instructions = 60;
  int64_t max_points = 20'000;
  // False: each denormal of float32 and float64 is replaced by 0 before it is used, so that results
  // do not depend on whether a device keeps denormals.
  bool has_denormals = true;
};

// Equal seeds give equal instructions, strides that are 0 or 1, and types; `size_seed` decides
// sizes, offsets and elements.
RandomGroup random_group(uint32_t seed, uint32_t size_seed, const RandomGroupLimits& limits = {});

// The outputs after evaluate_group() has run on outputs whose bytes are all `fill`, by port.
std::vector<std::string> expected_outputs(const RandomGroup& random, char fill);

// Says where output `port` differs from the expected bytes, except for the bits of NaN; "" if
// nowhere.
std::string explain_difference(const RandomGroup& random, size_t port, const std::string& expected,
                               const std::string& found);

}  // namespace tessera::codegen
