// The function that products and convolutions apply to each of their results.
#pragma once

#include <cstdint>
#include <limits>

namespace tessera::native {

// NaN stays NaN in all of them.
enum class ActivationKind : uint8_t {
  None,
  Relu,
  Clip,       // to [low, high]
  Silu,       // x * sigmoid(x)
  HardSwish,  // x * clip(x / 6 + 1 / 2, 0, 1)
  Gelu,       // x * (1 + erf(x / sqrt(2))) / 2; after products only, as the next one
  GeluTanh    // Gelu's approximation by tanh
};

struct Activation {
  ActivationKind kind = ActivationKind::None;
  float low = 0;  // of Clip
  float high = 0;

  // Whether x is multiplied by a function of x, which takes more than a few instructions; see
  // gated() in float_functions.h. All others clip to limits, which may be infinite.
  bool is_gated() const { return kind >= ActivationKind::Silu; }
  float lower_limit() const {
    if (kind == ActivationKind::Relu) return 0;
    return kind == ActivationKind::Clip ? low : -std::numeric_limits<float>::infinity();
  }
  float upper_limit() const {
    return kind == ActivationKind::Clip ? high : std::numeric_limits<float>::infinity();
  }
};

}  // namespace tessera::native
