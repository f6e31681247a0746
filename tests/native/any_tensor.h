// Random tensors of every element type, with sizes that are difficult for kernels.
#pragma once

#include <vector>

#include "candidate_check.h"

namespace tessera {

// Any element type but strings.
DataType any_type(Dice& dice);

// Elements with random bits (NaN, infinities and -0 among them); bools are 0 and 1.
Tensor any_elements(Dice& dice, DataType type, std::vector<int64_t> dims);

// Whole numbers from 0 to `largest`.
Tensor whole_numbers(Dice& dice, DataType type, std::vector<int64_t> dims, int64_t largest);

// `rank` sizes from 1 to `max_size`; in one case of twelve one of them is 0.
std::vector<int64_t> any_dims(Dice& dice, int64_t rank, int64_t max_size);

// Usually small sizes, sometimes such that wide vectors, tiles and units matter.
int64_t any_dim(Dice& dice, int64_t max_size);

// A list of int64, or of int32 if `type` says so.
Tensor integer_list(const std::vector<int64_t>& values, DataType type = DataType::Int64);

}  // namespace tessera
