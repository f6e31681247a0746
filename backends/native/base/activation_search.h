// Activations as models write them, in one node or several.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/activation.h"
#include "tessera/backend.h"

namespace tessera::native {

struct FoundActivation {
  std::vector<int32_t> nodes;  // ascending
  int32_t result = -1;         // value
  Activation activation;
};

// The activation that the node computes, or that it ends if it is the Mul of x * sigmoid(x);
// nullopt if none is known. Throws Failure if it clips to bounds that are not constant.
std::optional<Activation> activation_of(const plugin::Node& last);

// The activations of several nodes in `graph`, by the value to which they are applied. Only their
// nodes read that value and those between.
std::map<int32_t, FoundActivation> find_activations(const plugin::Graph& graph);

}  // namespace tessera::native
