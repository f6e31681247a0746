// Compares an output with what was expected of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/element.h"
#include "tessera/tensor.h"

namespace tessera::cli {

struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-5;
};

struct Comparison {
  // Why the tensors cannot be compared element by element; "" where they can.
  std::string difference_in_type;

  // Of the elements that are off, how many, and the worst: the one that is furthest beyond what it
  // may differ by.
  int64_t elements = 0;
  int64_t elements_off = 0;
  std::vector<int64_t> worst_indices;
  WideNumber actual = 0;
  WideNumber expected = 0;
  WideNumber difference = 0;  // |actual - expected|; NaN or infinite where either is
  WideNumber allowed = 0;     // absolute + relative * |expected|

  bool is_match() const { return difference_in_type.empty() && elements_off == 0; }
};

// Types and shapes must be equal, and for each element
// |actual - expected| <= absolute + relative * |expected|, as in numpy.allclose(); NaN equals NaN,
// and an infinity only itself.
Comparison compare(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance);

// What a person wants to know of a mismatch, in one or more lines; "" for a match.
std::string explain(const Comparison& comparison, DataType type);

}  // namespace tessera::cli
