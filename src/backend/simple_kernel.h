// The short form of the contract: kernels for single nodes on row-major buffers.
#pragma once

#include <string>
#include <vector>

#include "backend/graph_view.h"
#include "tessera/backend_abi.h"

namespace tessera {

// The kernel of `simple` for one node, over ports: each present input value once, in the order of
// the node; then its present outputs. Keeps a copy of the node's attributes; `simple` must outlive
// it. `unread`: the attributes with an effect that its predicate did not ask for. The first run
// that computes elements must ask for them, else it fails (TESSERA_UNSUPPORTED).
tessera_kernel make_kernel(const tessera_simple_kernel& simple, const Node& node,
                           const std::vector<std::string>& unread);

}  // namespace tessera
