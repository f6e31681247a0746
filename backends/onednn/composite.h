// Functions of one variable that models write out with several nodes (Swish as Mul and Sigmoid,
// Gelu with Erf or with Tanh), and that oneDNN has as one.
#pragma once

#include <cstdint>
#include <vector>

#include "eltwise.h"
#include "tessera/backend.h"

namespace tessera::onednn {

// `function` of value `input` gives value `output`; nobody else needs what lies between.
struct Composite {
  Eltwise function;
  int32_t input = -1;
  int32_t output = -1;
  std::vector<int32_t> nodes;  // ascending
};

// All of them in `graph`. Those that begin with one value stand together, the largest first.
// With TESSERA_NAN_EXACT only those that keep NaN.
std::vector<Composite> find_composites(const plugin::Graph& graph, int32_t nan);

}  // namespace tessera::onednn
