// Finds sparse values that become dense because of the chosen kernels.
#pragma once

#include <string>
#include <vector>

#include "backend/candidates.h"
#include "backend/layouts.h"
#include "graph/graph.h"
#include "place/placement.h"

namespace tessera {

struct StorageFallback {
  std::string location;  // of the node: "node 'softmax' (Softmax)"
  std::string value;     // "value 'x' (csr:400000)"
  std::string layout;    // that the kernel reads
  std::string reason;    // why the chosen kernel does not read it sparse
};

// Lists each pair of a node and a value that it reads if the value is sparse (fed sparse, a sparse
// constant, or produced sparse by a kernel of `placement`) but the node's kernel reads it in a
// dense layout. In the order of steps.
std::vector<StorageFallback> find_storage_fallbacks(const Graph& graph, const Offers& offers,
                                                    const Placement& placement,
                                                    const LayoutTable& layouts);

}  // namespace tessera
