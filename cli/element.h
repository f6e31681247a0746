// Single elements of a tensor of any type, for reports and comparisons.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/tensor.h"

namespace tessera::cli {

// Holds every element of every type exactly, 64-bit integers too, where it is 80 bits or wider.
using WideNumber = long double;

// The element at row-major `index`, which must be in range; bools are 0 and 1. The tensor's type
// must be one with elements.
WideNumber element_at(const Tensor& tensor, int64_t index);

// The same as text: "true", "-12", "0.25", "nan", with `digits` significant digits.
std::string element_text(const Tensor& tensor, int64_t index, int digits);

// "0.25", "inf", "-inf" or "nan".
std::string number_text(WideNumber number, int digits);

// Significant digits that tell any two elements of `type` apart.
int distinguishing_digits(DataType type);

// The indices, one an axis, of row-major `index`.
std::vector<int64_t> indices_of(const std::vector<int64_t>& dims, int64_t index);

// "(0, 3, 1)"; "()" for a scalar.
std::string indices_text(const std::vector<int64_t>& indices);

// What a glance at the tensor tells: its elements where they are few, else the range and mean of
// those that are finite and how many are not.
std::string summarise(const Tensor& tensor);

}  // namespace tessera::cli
