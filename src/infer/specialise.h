// Replaces the symbols of a graph by the numbers that bound shapes give them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace tessera {

// Gives the graph inputs named in `shapes` these shapes. A symbol that an input's declared shape
// shares with another input becomes the same number there. Types of values that nodes make are
// forgotten (element types stay), to be inferred again. Throws InvalidArgument: a name that is no
// input (the inputs are listed), another rank, a number that contradicts the declared one, two
// numbers for one symbol (naming both inputs), or an input that is read and still has an unknown
// dimension (naming the input and the dimension, and how to give it).
Graph specialise(const Graph& graph, const std::map<std::string, std::vector<int64_t>>& shapes);

}  // namespace tessera
