// The activation functions that a recurrent node names in its attributes.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace tessera::ops {

struct Activation {
  double (*function)(double value, double alpha, double beta) = nullptr;
  double alpha = 0;
  double beta = 0;

  double apply(double value) const { return function(value, alpha, beta); }
};

// f, g and h of each direction of an LSTM: Sigmoid, Tanh and Tanh where the node does not say.
// activation_alpha and activation_beta are handed in order to those functions that have one; those
// that get none use the default of the operator of the same name. Throws InvalidModel at the node.
std::vector<Activation> read_activations(const Node& node, int64_t directions);

}  // namespace tessera::ops
