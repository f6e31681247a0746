// The activation functions in the attributes of a recurrent node.
#pragma once

#include <memory_resource>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace tessera::ops {

struct Activation {
  double (*function)(double value, double alpha, double beta) = nullptr;
  double alpha = 0;
  double beta = 0;

  double apply(double value) const { return function(value, alpha, beta); }
};

// The functions of each direction in order; `defaults` apply to each direction if the node names
// none. The values of activation_alpha and activation_beta go, in order, to the functions that have
// such a parameter; functions that get no value use the default of the operator of the same name.
// Throws InvalidModel at the node.
std::pmr::vector<Activation> read_activations(
    const Node& node, std::span<const char* const> defaults, int64_t directions,
    std::pmr::memory_resource* memory = std::pmr::get_default_resource());

}  // namespace tessera::ops
