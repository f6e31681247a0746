// Refuses candidates of plug-ins that ignore a part of a node. An op gets attributes and inputs
// with new versions, and a plug-in that is older, or whose author forgot one, would compute
// something else than the model says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/candidates.h"
#include "backend/graph_view.h"

namespace tessera {

// The attributes of the node that can change its elements and that nobody asked for since
// graph.reads was cleared.
std::vector<std::string> unread_attributes(const tessera_graph& graph, NodeId node);

// Which attribute or optional input of its nodes a candidate ignores, as the end of a sentence
// ("ignores attribute 'mode' of node 'd'"); "" if none. An input is ignored if it is a constant
// that is no port, not absorbed, and never asked for.
std::string explain_unread(const tessera_graph& graph, const Candidate& candidate);

}  // namespace tessera
