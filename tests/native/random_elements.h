// Random tensors for arithmetic: numbers of every element type whose results can be compared,
// special values included.
#pragma once

#include <limits>
#include <vector>

#include "candidate_check.h"

namespace tessera {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// How a case draws its elements.
struct ElementRange {
  float low = -3;
  float high = 3;
  bool has_special = false;  // NaN, infinities, zeros of both signs, subnormals, the largest
  bool has_zero = true;      // false: no integer is 0, so that they can be divisors
};

// Elements of `type`, whole numbers in the range if the type has no others.
Tensor random_elements(Dice& dice, DataType type, std::vector<int64_t> dims,
                       const ElementRange& range = {});

// Sizes that are difficult for loops: odd ones, none at all, sometimes a zero or so many elements
// that there are several blocks.
std::vector<int64_t> random_dims(Dice& dice);

// `dims` with some of them replaced by 1, perhaps without the first ones: a shape that broadcasts
// to `dims`.
std::vector<int64_t> broadcastable(Dice& dice, const std::vector<int64_t>& dims);

}  // namespace tessera
