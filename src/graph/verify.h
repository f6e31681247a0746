// The legal form of a graph.
#pragma once

#include <string>

#include "graph/graph.h"

namespace tessera {

// Says what is wrong with `graph`, or "" when it is legal: ids in range, every value made exactly
// once and before it is read, names unique, no removed node, constants that agree with their type,
// nested graphs legal themselves. Runs between passes in builds with TESSERA_CHECK.
std::string explain_illegal(const Graph& graph);

// Throws ErrorKind::Internal with explain_illegal() and `stage`, the stage that made the graph.
void verify(const Graph& graph, const std::string& stage);

}  // namespace tessera
