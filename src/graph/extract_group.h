// A part of a graph as a graph of its own.
#pragma once

#include <span>

#include "graph/graph.h"

namespace tessera {

// The nodes (in any order; naming one twice changes nothing) in the graph's order, and the values
// that they touch, under their names. Its inputs are the values that the group reads and does not
// make, in the order in which it first reads them, constants aside, which stay constants. Its
// outputs are the values that it makes and that somebody else reads, fetches or captures, in the
// order in which they are made. Throws InvalidArgument where a node is not one of the graph, or
// nobody needs what the group makes.
Graph extract_group(const Graph& graph, std::span<const NodeId> nodes);

}  // namespace tessera
