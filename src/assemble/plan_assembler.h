// Kernels and plans of the placements that are tried for one graph.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "assemble/build_kernels.h"
#include "assemble/kernels_in_use.h"
#include "assemble/plan_constants.h"
#include "assemble/stored_kernels.h"
#include "backend/packs.h"
#include "base/parallel.h"
#include "engine/built_plan.h"
#include "graph/released_weight.h"
#include "place/placement.h"

namespace tessera {

// What became of building the kernels of a placement: all are there if both are empty.
struct AssembledKernels {
  std::vector<int> failed;                        // candidates that cannot be built
  std::optional<ReleasedWeight> released_weight;  // without which one cannot be built now
};

// Owns the kernels by candidate: placements that share a candidate share its kernel. `pool`,
// `packs`, `in_use` and `stored` must outlive it.
class PlanAssembler {
 public:
  PlanAssembler(ThreadPool& pool, PackStore& packs, const KernelsInUse& in_use,
                const StoredKernels& stored)
      : pool_(pool), packs_(packs), in_use_(in_use), stored_(stored) {}

  // Builds the kernels of `placement` that it does not have, and that none in use serves for, or
  // loads those that are stored. Refuses the candidates that could not be built in `base`, which
  // has graph, layouts and offers. `watcher` as build_kernels() has it.
  AssembledKernels build(const Placement& placement, BuiltPlan& base,
                         const BuildWatcher& watcher = {});

  // How many kernels of `placement` were in use.
  int count_reused(const Placement& placement) const;
  // How many of them came from bytes.
  int count_loaded(const Placement& placement) const;

  // What lay_out() needs of `base` for `placement`: a copy without whatever else was offered.
  static BuiltPlan part_of(const BuiltPlan& base, const Placement& placement);

  // The plan of `placement`, whose kernels are built, without constants. `base` has graph,
  // plug-ins, layouts and offers; what libraries keep for candidates that the placement lacks is
  // let go of. `also` and `conversion_prices` as make_plan() has them.
  BuiltPlan lay_out(BuiltPlan base, const Placement& placement, std::span<const ValueId> also,
                    const std::vector<std::vector<double>>& conversion_prices) const;

  // Fills in the constants, or gives a released weight without which it cannot. Throws what packing
  // fails with.
  [[nodiscard]] std::optional<ReleasedWeight> pack(BuiltPlan& built) const {
    return make_constants(built, packs_, pool_);
  }

 private:
  ThreadPool& pool_;
  PackStore& packs_;
  const KernelsInUse& in_use_;
  const StoredKernels& stored_;
  std::map<int, std::shared_ptr<const Kernel>> kernels_;
  std::set<int> reused_;  // candidates
  std::set<int> loaded_;  // candidates
};

// How many of its steps have a kernel.
int count_kernels(const BuiltPlan& built);

}  // namespace tessera
