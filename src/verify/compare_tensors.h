// Whether a kernel's numbers are right.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/parallel.h"
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

// "" or which element differs most and by how much. Floating elements may differ by a tolerance for
// their type, relative to the largest of: the expected element, `magnitude` (may be empty), a tenth
// of the largest expected element. All others must be equal.
std::string explain_difference(const Tensor& expected, const Tensor& magnitude,
                               const Tensor& found);

// "" or the first byte that differs.
std::string explain_byte_difference(std::span<const char> expected, std::span<const char> found);

}  // namespace tessera::verification
