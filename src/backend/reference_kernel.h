// Wraps the reference kernel of a node as a kernel of the contract.
#pragma once

#include "backend/graph_view.h"
#include "tessera/backend_abi.h"

namespace tessera {

// Buffers are row-major, one per input and output of the node in its order; an output of unknown
// size gets its memory from the context. The kernel keeps a copy of the node and requires the
// graph's registry as long as it lives. Throws Unsupported if the op has no kernel.
tessera_kernel make_reference_kernel(const tessera_graph& graph, NodeId node);

}  // namespace tessera
