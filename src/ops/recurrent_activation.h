// The activation functions that a recurrent node names in its attributes.
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

// The functions of each direction in order; `defaults` are those of one direction where the node
// names none. activation_alpha and activation_beta are handed in order to those functions that have
// one; those that get none use the default of the operator of the same name. Throws InvalidModel at
// the node.
std::pmr::vector<Activation> read_activations(
    const Node& node, std::span<const char* const> defaults, int64_t directions,
    std::pmr::memory_resource* memory = std::pmr::get_default_resource());

}  // namespace tessera::ops
