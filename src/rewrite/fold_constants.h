// Replaces nodes by constants if all their inputs are constant, or if their outputs are integers
// that shape inference has found (Shape of a known shape, and arithmetic on it).
//   Needs:  types and elements inferred.
//   Result: no node with only constant inputs, except random ones, those on state, those whose
//           kernel refuses its inputs (running reports the error), those that take too long, and
//           those whose result is too large (docs/decisions/0003).
//   Order:  before the passes that look for constants.
#pragma once

#include "rewrite/pipeline.h"

namespace tessera {

// A result of up to this size is always allowed, even if the replaced inputs are smaller.
inline constexpr int64_t kMaxGrownBytes = int64_t{16} << 20;
// The limit for the sum of all results that are larger than their inputs.
inline constexpr int64_t kMaxGrownBytesTogether = int64_t{256} << 20;

// The most work of a node that is folded: seconds. Kernels of products are near the speed of the
// processor, others are not.
inline constexpr int64_t kMaxFoldedFlops = int64_t{1} << 32;
inline constexpr int64_t kMaxFoldedProductFlops = int64_t{1} << 38;

Graph fold_constants(Graph graph, const PassContext& context);

}  // namespace tessera
