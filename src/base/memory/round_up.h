// Sizes that are a multiple of a unit: pages, cache lines.
#pragma once

namespace tessera {

// The least multiple of `unit` that is not less than `value`. Neither is negative, and the sum of
// both fits the type.
template <class Integer>
constexpr Integer round_up(Integer value, Integer unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace tessera
