// Single elements of a tensor of any type, for reports and comparisons.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/tensor.h"

namespace tessera::cli {

// Represents every element of every type exactly. For 64-bit integers this needs a long double of
// at least 80 bits.
using WideNumber = long double;

// The element at row-major `index`, which must be in range; bools are 0 and 1. The tensor's data
// type must be one of numbers or bools.
WideNumber element_at(const Tensor& tensor, int64_t index);

// An element as text: "true", "-12", "0.25", "nan", with `digits` significant digits. A string is
// quoted, and cut if it is long.
std::string element_text(const Tensor& tensor, int64_t index, int digits);

// "0.25", "inf", "-inf" or "nan".
std::string number_text(WideNumber number, int digits);

// Significant digits that tell any two elements of `type` apart.
int distinguishing_digits(DataType type);

// The coordinates, one for each axis, of row-major `index`.
std::vector<int64_t> indices_of(const std::vector<int64_t>& dims, int64_t index);

// "(0, 3, 1)"; "()" for a scalar.
std::string indices_text(const std::vector<int64_t>& indices);

// A short description of the tensor: all elements if they are few, otherwise the range and mean of
// the finite elements and the number of those that are not finite, or the first strings.
std::string summarise(const Tensor& tensor);

}  // namespace tessera::cli
