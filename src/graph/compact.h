// Removes unused nodes and values after a pass and renumbers the rest.
#pragma once

#include "graph/graph.h"

namespace tessera {

// Drops nodes marked is_removed, and values that no node makes or reads and that are no inputs or
// outputs. Ids change; the order and the names stay.
Graph compact(Graph graph);

}  // namespace tessera
