// Whether a kernel's numbers are right.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "tessera/backend_abi.h"
#include "tessera/tensor.h"
#include "verify/op_case.h"

namespace tessera::verification {

// What every value of a case should hold.
struct ExpectedValues {
  std::vector<Tensor> values;  // by value id
  // The same of a run on the inputs' magnitudes: for what is a sum of products, the magnitude of
  // what was summed. Empty where that run failed.
  std::vector<Tensor> magnitudes;
};

// Runs the reference kernels. Throws where an op has none, or refuses these elements.
ExpectedValues expected_values(const OpCase& op_case, const ops::Registry& registry,
                               ThreadPool& pool);

// What every value of a case holds for inputs with special values (special_values.h); empty where
// it has no floating-point inputs, or the reference refuses such values.
std::vector<Tensor> special_values_of(const OpCase& op_case, const ops::Registry& registry,
                                      ThreadPool& pool);

// How far two tensors are from each other, and how far they may be.
struct Difference {
  double error = 0;      // the largest one of an element; infinite for NaN or other dimensions
  double tolerance = 0;  // 0 for what has to be equal
  std::string text;      // "" where error <= tolerance, else which element differs most
};

// Floating elements may differ by a tolerance for their type and for `precision`
// (TESSERA_PRECISION_), relative to the largest of: the expected element, `magnitude` (may be
// empty), a tenth of the largest expected element. NaN and infinities may stand for each other, but
// infinity not for -infinity. Where `magnitude` is none of a number, any of them will do: a sum in
// another order may overflow. All others must be equal: their error is 0 or 1.
Difference measure_difference(const Tensor& expected, const Tensor& magnitude, const Tensor& found,
                              int precision = TESSERA_PRECISION_FLOAT32);

// The text of measure_difference().
std::string explain_difference(const Tensor& expected, const Tensor& magnitude,
                               const Tensor& found);

// The same elements without their signs.
Tensor magnitude_of(const Tensor& tensor);

// "" or the first byte that differs.
std::string explain_byte_difference(std::span<const char> expected, std::span<const char> found);

}  // namespace tessera::verification
