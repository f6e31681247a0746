// The reference kernel of a node as a kernel of the contract.
#pragma once

#include "backend/graph_view.h"
#include "tessera/backend_abi.h"

namespace tessera {

// Buffers are row-major, one for each input and output of the node in its order; an output whose
// size was not known gets its memory from the context. The kernel keeps a copy of the node, and
// needs the graph's registry as long as it lives. Throws Unsupported where the op has no kernel.
tessera_kernel make_reference_kernel(const tessera_graph& graph, NodeId node);

}  // namespace tessera
