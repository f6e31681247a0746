// Judges the accuracy of a kernel's results.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/threads/parallel.h"
#include "tessera/backend_abi.h"
#include "tessera/tensor.h"
#include "verify/error_limits.h"
#include "verify/op_case.h"

namespace tessera::verification {

// The expected value of every value of a case.
struct ExpectedValues {
  std::vector<Tensor> values;  // by value id
  // The values for inputs replaced by their magnitudes. For a sum of products, that is the sum of
  // the magnitudes of its terms. Empty if that run failed.
  std::vector<Tensor> magnitudes;
  // How far kernels may be from the exact values, by value id. Empty if nothing is known.
  std::vector<ErrorLimits> limits = {};
};

// Runs the reference kernels. Throws if an op has none, or if it rejects these elements.
ExpectedValues expected_values(const OpCase& op_case, const ops::Registry& registry,
                               ThreadPool& pool);

// The values for inputs with special values (special_values.h). Empty if the case has no
// floating-point inputs or the reference rejects such values.
std::vector<Tensor> special_values_of(const OpCase& op_case, const ops::Registry& registry,
                                      ThreadPool& pool);

// The difference of two tensors, and the allowed difference.
struct Difference {
  double error = 0;      // of the worst element; infinite for NaN or different dimensions
  double tolerance = 0;  // 0 if equality is required
  std::string text;      // "" if error <= tolerance, else describes the worst element
};

// Floating-point elements may differ by a tolerance for their type and for `precision`
// (TESSERA_PRECISION_), relative to the largest of: the expected element, `magnitude` (may be
// empty), a tenth of the largest expected element. NaN and infinities may replace each other,
// except infinity for -infinity. If `magnitude` is not finite, any of them is accepted, because a
// sum in another order may overflow. Elements of other types must be equal: their error is 0 or 1.
Difference measure_difference(const Tensor& expected, const Tensor& magnitude, const Tensor& found,
                              int precision = TESSERA_PRECISION_FLOAT32);

// Judge::Ulps: floating-point elements may differ by `ulps` ulps of the expected element. `error`
// and `tolerance` are relative to it.
Difference measure_ulps(const Tensor& expected, double ulps, const Tensor& found);

// Judge::Limits. `expected` is the reference's result in the value's own type, which decides where
// numbers overflow. `error` and `tolerance` are relative to the exact element, or to the allowed
// error if that is larger, so `tolerance` is at most 1.
Difference measure_excess(const Tensor& expected, const ErrorLimits& limits, const Tensor& found);

// The text of measure_difference().
std::string explain_difference(const Tensor& expected, const Tensor& magnitude,
                               const Tensor& found);

// The absolute values of the elements.
Tensor magnitude_of(const Tensor& tensor);

// "" or a description of the first different byte.
std::string explain_byte_difference(std::span<const char> expected, std::span<const char> found);

}  // namespace tessera::verification
