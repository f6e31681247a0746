// Random tensors of every element type, with sizes that kernels may stumble over.
#pragma once

#include <string>
#include <vector>

#include "candidate_check.h"

namespace tessera {

// Any element type but strings.
DataType any_type(Dice& dice);

// Elements of any bits (NaN, infinities and -0 among them); bool holds 0 and 1.
Tensor any_elements(Dice& dice, DataType type, std::vector<int64_t> dims);

// `rank` sizes from 1 to `most`; in one case of twelve one of them is 0.
std::vector<int64_t> any_dims(Dice& dice, int64_t rank, int64_t most);

// Now and then sizes for which wide vectors, tiles and units matter, else small ones.
int64_t any_dim(Dice& dice, int64_t most);

// A list of int64, or now and then int32.
Tensor integer_list(const std::vector<int64_t>& values, DataType type = DataType::Int64);

}  // namespace tessera
