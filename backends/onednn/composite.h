// Unary functions that models decompose into several nodes (Swish as Mul and Sigmoid, Gelu with Erf
// or Tanh) and that oneDNN computes as one.
#pragma once

#include <cstdint>
#include <vector>

#include "eltwise.h"
#include "tessera/backend.h"

namespace tessera::onednn {

// `function` of value `input` gives value `output`. No other node reads the values between.
struct Composite {
  Eltwise function;
  int32_t input = -1;
  int32_t output = -1;
  std::vector<int32_t> nodes;  // ascending
};

// All composites in `graph` that are exact enough (accuracy.h), grouped by their input, the largest
// first. With TESSERA_NAN_EXACT only those that keep NaN.
std::vector<Composite> find_composites(const plugin::Graph& graph, int32_t nan);

}  // namespace tessera::onednn
