// The short form of the contract: kernels for single nodes on row-major buffers.
#pragma once

#include "backend/graph_view.h"
#include "tessera/backend_abi.h"

namespace tessera {

// The kernel of `simple` for one node, over ports: each present input value once, in the order of
// the node; then its present outputs. Keeps a copy of the node's attributes; `simple` must outlive
// it.
tessera_kernel make_kernel(const tessera_simple_kernel& simple, const Node& node);

}  // namespace tessera
