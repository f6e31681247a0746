// Compares an output with its expected values.
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
  // Why the tensors cannot be compared element by element; "" if they can.
  std::string difference_in_type;

  // The number of mismatches, and the worst one: the element that exceeds its tolerance the most.
  int64_t elements = 0;
  int64_t elements_off = 0;
  std::vector<int64_t> worst_indices;
  WideNumber actual = 0;
  WideNumber expected = 0;
  WideNumber difference = 0;  // |actual - expected|; NaN or infinite if an operand is
  WideNumber allowed = 0;     // absolute + relative * |expected|

  bool is_match() const { return difference_in_type.empty() && elements_off == 0; }
};

// Requires equal types and shapes, and for each element |actual - expected| <= absolute + relative
// * |expected|, as in numpy.allclose(). NaN matches NaN, and an infinity matches only itself.
Comparison compare(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance);

// Describes a mismatch to the user in one or more lines; "" for a match.
std::string explain(const Comparison& comparison, DataType type);

}  // namespace tessera::cli
