// The activation functions that fused ops of com.microsoft apply to their results before rounding.
#pragma once

#include <optional>
#include <span>

#include "ops/op.h"

namespace tessera::ops {

// y = function(x, parameters...). The meaning of the parameters is that of the attributes of the op
// of this name, in the order of the alphabet; of Clip, they are the bounds.
struct FusedActivation {
  void (*function)(std::span<double> elements, double alpha, double beta) = nullptr;
  double alpha = 0;
  double beta = 0;

  void apply(std::span<double> elements) const {
    if (function != nullptr) function(elements, alpha, beta);
  }
};

// The function that attribute `activation` names; none if it is omitted or empty. The parameters
// are those of attribute `activation_params`, or of `activation_alpha` and `activation_beta` (of
// Selu: `activation_gamma`); without them, they have the defaults of the op of that name. Throws
// InvalidModel at the node.
FusedActivation read_activation(const Node& node);

}  // namespace tessera::ops
