// Kernels of the contract for single nodes: from the reference, and from the short form of the
// contract.
#pragma once

#include <string>
#include <vector>

#include "backend/graph_view.h"
#include "tessera/backend_abi.h"

namespace tessera {

// Wraps the reference kernel of a node as a kernel of the contract (reference_kernel.cc). Buffers
// are row-major, one per input and output of the node in its order; an output of unknown size gets
// its memory from the context. The kernel keeps a copy of the node and requires the graph's
// registry as long as it lives. Throws Unsupported if the op has no kernel.
tessera_kernel make_reference_kernel(const tessera_graph& graph, NodeId node);

// The short form of the contract (simple_kernel.cc): kernels for single nodes on row-major buffers.
// The kernel of `simple` for one node, over ports: each present input value once, in the order of
// the node; then its present outputs. Keeps a copy of the node's attributes; `simple` must outlive
// it. `unread`: the attributes with an effect that its predicate did not ask for. The first run
// that computes elements must ask for them, else it fails (TESSERA_UNSUPPORTED).
tessera_kernel make_kernel(const tessera_simple_kernel& simple, const Node& node,
                           const std::vector<std::string>& unread);

}  // namespace tessera
