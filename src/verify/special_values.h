// Tests how kernels handle NaN, infinities and extreme numbers: makes inputs that contain some, and
// judges the outputs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "graph/graph.h"
#include "ops/registry.h"
#include "tessera/tensor.h"

namespace tessera::verification {

// Which special values are tested on a graph.
enum class SpecialValues : uint8_t {
  NaN,  // for convolutions and matrix products: the result for an infinity depends on the order
  Infinities,  // and NaN
  // For single elementwise ops, where elements are independent: also the largest numbers, whose
  // sums overflow in some orders, denormals, and numbers from tails.
  All,
};
SpecialValues special_values_for(const Graph& graph, const ops::Registry& registry);

// `tensor` with a few special values, at positions chosen by `name`: equal arguments give equal
// elements. An empty tensor if the elements are not floating-point.
Tensor with_special_values(const Tensor& tensor, std::string_view name, SpecialValues kinds);

// The reference results for an output.
struct SpecialExpectation {
  const Tensor& plain;      // for inputs without special values
  const Tensor& magnitude;  // for those, see ExpectedValues; may be empty
  const Tensor& special;    // for the inputs of with_special_values()
  SpecialValues kinds = SpecialValues::NaN;
  // With SpecialValues::All: how many ulps finite elements may be away; nullopt: a tolerance.
  std::optional<double> ulps = std::nullopt;
};

// For SpecialExpectation::ulps: the ulps of the only node of `graph`, if its bound consists of them
// alone; nullopt for float64, where the reference is no better.
std::optional<double> ulps_of_special_values(const Graph& graph, const ops::Registry& registry);

// Says what is wrong with `found`, the output for inputs with special values; "" if nothing is. If
// the reference gives NaN, `found` must be NaN; if it gives an infinity, `found` must not be
// finite. Where the reference is the same with and without special values, `found` must be near it
// (see measure_difference()), unless `may_spread`. The remaining elements depend on special values
// but are finite: bools must be equal, and with SpecialValues::All floating-point numbers must be
// near; otherwise they may have any value.
std::string explain_lost_special(const SpecialExpectation& expected, const Tensor& found,
                                 bool may_spread, int precision);

}  // namespace tessera::verification
