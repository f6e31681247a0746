// Replaces what can be computed before running by the constants it gives: nodes whose inputs are
// all constant, and nodes whose integer outputs shape inference has found (Shape of a known shape
// and the arithmetic on it).
//   Needs:  types and elements inferred.
//   Gives:  no node with only constant inputs, except random ones, those on state, those whose
//           kernel refuses its inputs (running tells the user), and those whose result is too large
//           (docs/decisions/0003).
//   Order:  first: later passes ask for constants.
#pragma once

#include "rewrite/pipeline.h"

namespace tessera {

// A result may always take this much, even if the inputs that it replaces are smaller.
inline constexpr int64_t kMostGrownBytes = int64_t{16} << 20;
// What all results that are larger than their inputs may take together.
inline constexpr int64_t kMostGrownBytesTogether = int64_t{256} << 20;

Graph fold_constants(Graph graph, const PassContext& context);

}  // namespace tessera
