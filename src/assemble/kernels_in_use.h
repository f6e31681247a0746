// Kernels of an executor's plans for other shapes, which serve again where they were not built for
// what differs.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/candidates.h"
#include "backend/kernel.h"
#include "backend/layouts.h"
#include "engine/built_plan.h"
#include "graph/graph.h"

namespace tessera {

class KernelsInUse {
 public:
  // `plans` are of one model, and outlive this.
  explicit KernelsInUse(std::span<const BuiltPlan* const> plans);

  // The kernel of a candidate that is the same in all that its kernel was built for: the nodes with
  // their attributes and constants, the ports, and the dimensions that it says it is built for
  // (tessera_candidate::built_for). Null where there is none.
  std::shared_ptr<const Kernel> find(const Candidate& candidate, const Graph& graph,
                                     const LayoutTable& layouts) const;

 private:
  struct Entry {
    const BuiltPlan* plan = nullptr;
    size_t step = 0;
  };
  std::multimap<std::string, Entry> entries_;  // by backend, algorithm and names of nodes
};

}  // namespace tessera
