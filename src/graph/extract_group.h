// Extracts a part of a graph as a graph of its own.
#pragma once

#include <span>

#include "graph/graph.h"

namespace tessera {

// Extracts `nodes` (in any order; duplicates have no effect) in the graph's order, and the values
// that they read or make, under their names. The inputs of the result are the values that the group
// reads and does not make, in the order of their first read; constants stay constants. Its outputs
// are the values that it makes and that other nodes read, or that are fetched or captured, and
// those that nothing reads at all, which kernels write like others; in the order in which they are
// made. Throws InvalidArgument if a node is not in the graph, or if nothing outside needs a value
// of the group.
Graph extract_group(const Graph& graph, std::span<const NodeId> nodes);

}  // namespace tessera
