// Removes nodes whose outputs are not needed, and optional outputs at the end of a node's list that
// are not.
//   Needs:  nothing.
//   Result: every node leads to a graph output, a kept value or a state; so does its last output,
//   if
//           it is optional and not the only one.
//   Order:  last, because the other passes detach nodes.
#pragma once

#include "rewrite/pipeline.h"

namespace tessera {

Graph remove_dead_nodes(Graph graph, const PassContext& context);

}  // namespace tessera
