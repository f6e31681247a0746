// Converts single elements to double and back, because reference kernels compute in double.
// convert_elements.h converts blocks between any types, as Cast does.
#pragma once

#include <cmath>
#include <limits>
#include <memory_resource>
#include <type_traits>
#include <vector>

#include "ops/op.h"
#include "ops/visit_type.h"

namespace tessera::ops {

template <class T>
double to_double(T value) {
  return static_cast<double>(static_cast<compute_t<T>>(value));
}

// Floating types are rounded, once. Integers are truncated, saturated to their range, and 0 for
// NaN.
template <class T>
T from_double(double value) {
  if constexpr (std::is_integral_v<T>) {
    if (std::isnan(value)) return 0;
    // The largest 64-bit integers round up to a power of two, which is out of range.
    if (value >= static_cast<double>(std::numeric_limits<T>::max())) {
      return std::numeric_limits<T>::max();
    }
    if (value <= static_cast<double>(std::numeric_limits<T>::lowest())) {
      return std::numeric_limits<T>::lowest();
    }
    return static_cast<T>(value);
  } else {
    return static_cast<T>(value);
  }
}

// All elements of a floating tensor; an empty vector for an omitted one.
inline std::pmr::vector<double> to_doubles(const TensorView& tensor,
                                           std::pmr::memory_resource& memory) {
  std::pmr::vector<double> result(&memory);
  if (tensor.is_empty()) return result;
  result.reserve(static_cast<size_t>(tensor.elements));
  visit_floating(tensor.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const T element : tensor.as<T>()) result.push_back(to_double(element));
  });
  return result;
}

// Rounds `values` to the elements of a floating tensor of the same size.
inline void store_doubles(std::span<const double> values, const MutableTensorView& tensor) {
  visit_floating(tensor.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::span<T> target = tensor.as<T>();
    for (size_t index = 0; index < target.size(); ++index) {
      target[index] = from_double<T>(values[index]);
    }
  });
}

}  // namespace tessera::ops
