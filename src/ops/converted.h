// From double to any element type: what the kernels that compute in double end with.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/visit_type.h"

namespace tessera::ops {

// Floating types round; integers take the part before the point, the nearest end of their range
// where the value lies outside it, and 0 for NaN.
template <class T>
T converted(double value) {
  if constexpr (std::is_same_v<T, double>) {
    return value;
  } else if constexpr (std::is_integral_v<T>) {
    if (std::isnan(value)) return 0;
    // The largest 64-bit integers round up to a power of two, which is already outside.
    if (value >= static_cast<double>(std::numeric_limits<T>::max())) {
      return std::numeric_limits<T>::max();
    }
    if (value <= static_cast<double>(std::numeric_limits<T>::lowest())) {
      return std::numeric_limits<T>::lowest();
    }
    return static_cast<T>(value);
  } else {
    return T(static_cast<compute_t<T>>(value));
  }
}

}  // namespace tessera::ops
