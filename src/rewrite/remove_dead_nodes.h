// Removes nodes none of whose outputs anybody needs.
//   Needs:  nothing.
//   Gives:  every node leads to a graph output, a kept value or a state.
//   Order:  last: the other passes cut nodes loose.
#pragma once

#include "rewrite/pipeline.h"

namespace tessera {

Graph remove_dead_nodes(Graph graph, const PassContext& context);

}  // namespace tessera
