// The order in which nodes run, and when their values may be released.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/graph.h"

namespace tessera {

struct Schedule {
  struct Step {
    NodeId node;
    // Values that nothing reads after this step, including inputs and constants: the runner drops
    // only its own reference.
    std::vector<ValueId> released;
  };
  std::vector<Step> steps;  // the graph's own order
  // The maximum number of bytes of node outputs that are live at the same time; nullopt if a size
  // is unknown. Counts neither inputs nor constants.
  std::optional<int64_t> peak_bytes;
};

// Pure. Outputs and kept values are never released. Throws InvalidModel if sizes exceed 64 bits.
Schedule make_schedule(const Graph& graph);

}  // namespace tessera
