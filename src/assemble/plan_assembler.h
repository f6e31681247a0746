// Builds the kernels and plans of the placements that are tried for one graph.
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

// The result of building the kernels of a placement. If both members are empty, all are built.
struct AssembledKernels {
  std::vector<int> failed;                        // candidates that cannot be built
  std::optional<ReleasedWeight> released_weight;  // needed to build a kernel
};

// Owns the kernels by candidate: placements that share a candidate share its kernel. `pool`,
// `packs`, `in_use` and `stored` must outlive this.
class PlanAssembler {
 public:
  PlanAssembler(ThreadPool& pool, PackStore& packs, const KernelsInUse& in_use,
                const StoredKernels& stored)
      : pool_(pool), packs_(packs), in_use_(in_use), stored_(stored) {}

  // Builds or loads the kernels of `placement`, except those that it already has, that it finds in
  // `in_use`, or that another model of this process uses. Adds refusals for candidates that could
  // not be built, or whose kernels failed their check (kernel_judge.h), to `base`, which must have
  // graph, registry, layouts and offers; there it also raises Candidate::library_bytes to what
  // libraries were seen to keep. For `watcher` see
  // build_kernels().
  AssembledKernels build(const Placement& placement, BuiltPlan& base,
                         const BuildWatcher& watcher = {});

  // The number of kernels of `placement` that another plan had.
  int count_reused(const Placement& placement) const;
  // The number of kernels of `placement` that were loaded from bytes.
  int count_loaded(const Placement& placement) const;

  // A copy of the parts of `base` that lay_out() needs for `placement`. All other candidates are
  // empty.
  static BuiltPlan part_of(const BuiltPlan& base, const Placement& placement);

  // Returns the plan of `placement`, without constants. The kernels of `placement` must be built.
  // `base` must have graph, plug-ins, layouts and offers. Candidates that the placement does not
  // use are released, with what libraries keep for them. For `also` and `conversion_prices` see
  // make_plan().
  BuiltPlan lay_out(BuiltPlan base, const Placement& placement, std::span<const ValueId> also,
                    const std::vector<std::vector<double>>& conversion_prices) const;

  // Fills in the constants, or returns a released weight that this needs. Throws the errors of
  // packing.
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

// The number of steps that have a kernel.
int count_kernels(const BuiltPlan& built);

}  // namespace tessera
