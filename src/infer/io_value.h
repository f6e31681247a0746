// Inputs and outputs by name.
#pragma once

#include <string>

#include "graph/graph.h"

namespace tessera {

// The input or output of `graph` with this name. Throws InvalidArgument at `where`, listing all, if
// there is none.
Value& io_value(Graph& graph, const std::string& name, const std::string& where);

}  // namespace tessera
