// Random tensors for arithmetic: numbers of every element type whose results can be compared, with
// the special ones among them.
#pragma once

#include <vector>

#include "candidate_check.h"

namespace tessera {

// What a case draws its elements from.
struct ElementRange {
  float low = -3;
  float high = 3;
  bool has_special = false;  // NaN, infinities, zeros of both signs, subnormals, the largest
  bool has_zero = true;      // not of integers, so that they can be divided by
};

// Elements of `type`, whole numbers within the range where it has no others.
Tensor random_elements(Dice& dice, DataType type, std::vector<int64_t> dims,
                       const ElementRange& range = {});

// Dimensions that loops may stumble over: odd ones, none at all, now and then a zero or so many
// that there are several blocks.
std::vector<int64_t> random_dims(Dice& dice);

// `dims` with some of them 1, perhaps without the first ones: what broadcasts to them.
std::vector<int64_t> broadcastable(Dice& dice, const std::vector<int64_t>& dims);

}  // namespace tessera
