// Replaces the symbols of a graph by the numbers of given input shapes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace tessera {

// Gives the graph inputs named in `shapes` these shapes. A symbol that several inputs share becomes
// the same number everywhere. Shapes of values made by nodes are reset, to be inferred again; their
// element types stay. Throws InvalidArgument for a name that is not an input (listing the inputs),
// another rank, a number that contradicts the declared one, two numbers for one symbol (naming both
// inputs), and an input that is read but still has an unknown dimension (naming the input, the
// dimension and how to give it).
Graph specialise(const Graph& graph, const std::map<std::string, std::vector<int64_t>>& shapes);

}  // namespace tessera
