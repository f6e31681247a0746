// Removes nodes whose outputs are not needed.
//   Needs:  nothing.
//   Result: every node leads to a graph output, a kept value or a state.
//   Order:  last, because the other passes detach nodes.
#pragma once

#include "rewrite/pipeline.h"

namespace tessera {

Graph remove_dead_nodes(Graph graph, const PassContext& context);

}  // namespace tessera
