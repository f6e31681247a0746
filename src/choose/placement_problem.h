// From offers for a graph to the plain data that a placement is solved on.
#pragma once

#include <string>
#include <vector>

#include "backend/candidates.h"
#include "backend/layouts.h"
#include "graph/graph.h"
#include "place/placement.h"

namespace tessera {

// Nodes, values, candidates and layouts under the same numbers; assumed prices of conversions.
PlacementProblem make_problem(const Graph& graph, const Offers& offers, const LayoutTable& layouts);

// By node, how errors call it.
std::vector<std::string> node_locations(const Graph& graph);

// What a conversion takes on this machine, until it is measured.
double assumed_conversion_seconds(int64_t bytes);

}  // namespace tessera
