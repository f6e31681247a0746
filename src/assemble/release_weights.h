// Weights whose elements nobody needs once they are packed.
#pragma once

#include "engine/built_plan.h"
#include "graph/graph.h"

namespace tessera {

// Takes the elements of those constants out of `graph` (by name) and out of `built` that `built`
// reads in packed form only: floating-point ones above TESSERA_SMALL_CONSTANT_BYTES. What other
// plans hold stays with them, and what `other`, of the same graph, reads as it is stays everywhere.
// Gives the bytes released from `graph`.
int64_t release_packed_constants(Graph& graph, BuiltPlan& built, const BuiltPlan* other = nullptr);

}  // namespace tessera
