// The legal form of a graph.
#pragma once

#include <string>

#include "graph/graph.h"

namespace tessera {

// Says what is wrong with `graph`, or "" if it is legal: ids are in range, every value is made
// exactly once and before it is read, names are unique, no node is marked removed, constants agree
// with their type, nested graphs are legal. Runs between passes in builds with TESSERA_CHECK.
std::string explain_illegal(const Graph& graph);

// Throws ErrorKind::Internal with explain_illegal() and `stage`, the stage that produced the graph.
void verify(const Graph& graph, const std::string& stage);

}  // namespace tessera
