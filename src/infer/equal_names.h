// The types that follow if dimensions with one name are equal, for people who read them.
#pragma once

#include "graph/graph.h"
#include "ops/registry.h"

namespace tessera {

// The graph in which all dimensions of inputs that have one name are one symbol, and the types that
// follow. The graph as it is if these dimensions cannot be equal. No plan may rely on it.
Graph with_equal_names(const Graph& graph, const ops::Registry& registry);

}  // namespace tessera
