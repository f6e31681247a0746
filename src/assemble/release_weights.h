// Releases weights whose elements are no longer needed after packing.
#pragma once

#include "engine/built_plan.h"
#include "graph/graph.h"

namespace tessera {

// Releases the elements of floating-point constants above TESSERA_SMALL_CONSTANT_BYTES that `built`
// reads only in packed form, both in `graph` (where they are found by name) and in `built`. Other
// plans keep the elements that they hold. Constants that `other`, a plan of the same graph, reads
// unpacked are not released. Returns the bytes released from `graph`.
int64_t release_packed_constants(Graph& graph, BuiltPlan& built, const BuiltPlan* other = nullptr);

}  // namespace tessera
