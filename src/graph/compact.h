// Removes what passes have cut loose, and renumbers.
#pragma once

#include "graph/graph.h"

namespace tessera {

// Drops nodes marked is_removed and values that nothing makes, reads or feeds; ids change, order
// stays. Names stay as they are.
Graph compact(Graph graph);

}  // namespace tessera
