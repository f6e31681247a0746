// What a kernel may not lose: inputs with NaN, infinities and the numbers at the ends of their type
// at a few places, and what has to come of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "graph/graph.h"
#include "ops/registry.h"
#include "tessera/tensor.h"

namespace tessera::verification {

// Which special values are tried on a graph.
enum class SpecialValues : uint8_t {
  NaN,  // on convolutions and matrix products: what comes of an infinity depends on the order
  Infinities,  // and NaN
  // One elementwise op computes each element by itself: also the largest numbers, of which sums
  // overflow in one order and not in another, and denormals.
  All,
};
SpecialValues special_values_for(const Graph& graph, const ops::Registry& registry);

// `tensor` with such values at a few places, chosen by `name`: equal arguments give equal elements.
// An empty tensor if it has no floating-point elements.
Tensor with_special_values(const Tensor& tensor, std::string_view name, SpecialValues kinds);

// An output as the reference gives it.
struct SpecialExpectation {
  const Tensor& plain;      // of inputs without special values
  const Tensor& magnitude;  // as ExpectedValues has it, of the same; may be empty
  const Tensor& special;    // of the inputs of with_special_values()
  SpecialValues kinds = SpecialValues::NaN;
};

// What `found`, of the inputs with special values, has wrong; "" if nothing. Where the reference
// gives NaN, so has `found`; where it gives an infinity, `found` may not be finite. Where the
// reference gives the same with and without special values, `found` has to be near it, as
// measure_difference() says, unless `may_spread`. All other elements read special values and are
// finite all the same: bools have to be equal, and floating-point numbers near with
// SpecialValues::All; else they may be anything.
std::string explain_lost_special(const SpecialExpectation& expected, const Tensor& found,
                                 bool may_spread, int precision);

}  // namespace tessera::verification
