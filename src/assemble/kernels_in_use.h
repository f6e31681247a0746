// Finds kernels of an executor's plans for other shapes that can be reused, because they were not
// built for the dimensions that differ.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/candidates.h"
#include "backend/contract/kernel.h"
#include "backend/layouts.h"
#include "engine/built_plan.h"
#include "graph/graph.h"

namespace tessera {

class KernelsInUse {
 public:
  // `plans` must be of one model and outlive this.
  explicit KernelsInUse(std::span<const BuiltPlan* const> plans);

  struct Found {
    std::shared_ptr<const Kernel> kernel;
    int64_t library_bytes = 0;  // that its library keeps for it
  };
  // Returns a kernel whose candidate equals `candidate` in everything that a kernel is built for:
  // the nodes with their attributes and constants, the ports, and the dimensions that it declares
  // (tessera_candidate::built_for). No kernel if there is none.
  Found find(const Candidate& candidate, const Graph& graph, const LayoutTable& layouts) const;

 private:
  struct Entry {
    const BuiltPlan* plan = nullptr;
    size_t step = 0;
  };
  std::multimap<std::string, Entry> entries_;  // by backend, algorithm and names of nodes
};

}  // namespace tessera
