// In which order nodes run, and when their values may be let go.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/graph.h"

namespace tessera {

struct Schedule {
  struct Step {
    NodeId node;
    // Values that nothing reads after this step. Inputs and constants are among them: the runner
    // lets go of its reference only.
    std::vector<ValueId> released;
  };
  std::vector<Step> steps;  // the graph's own order
  // Bytes of node outputs alive at once, at most; nullopt while a size is unknown. Counts neither
  // inputs nor constants.
  std::optional<int64_t> peak_bytes;
};

// Pure. Outputs and kept values are never released. Throws InvalidModel where sizes exceed 64 bits.
Schedule make_schedule(const Graph& graph);

}  // namespace tessera
