// Where sparse values are made dense because of the kernel that was chosen.
#pragma once

#include <string>
#include <vector>

#include "backend/candidates.h"
#include "backend/layouts.h"
#include "graph/graph.h"
#include "place/placement.h"

namespace tessera {

struct StorageFallback {
  std::string place;   // of the node: "node 'softmax' (Softmax)"
  std::string value;   // "value 'x' (csr:400000)"
  std::string layout;  // that the kernel takes
  std::string reason;  // why no kernel takes it sparse
};

// One for each node and value that is at hand sparsely (fed so, a sparse constant, or made so by a
// kernel of `placement`) and that the node's kernel takes in a dense layout, in the order of steps.
std::vector<StorageFallback> find_storage_fallbacks(const Graph& graph, const Offers& offers,
                                                    const Placement& placement,
                                                    const LayoutTable& layouts);

}  // namespace tessera
