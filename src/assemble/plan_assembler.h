// Builds the kernels and plans of the placements that are tried for one graph, and makes the
// constants of the plans.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "assemble/kernel_judge.h"
#include "assemble/kernels_in_use.h"
#include "assemble/stored_kernels.h"
#include "backend/candidates.h"
#include "backend/packs.h"
#include "base/threads/parallel.h"
#include "engine/built_plan.h"
#include "graph/released_weight.h"
#include "place/placement.h"

namespace tessera {

// Makes the constants of a plan in the forms that its steps read (plan_constants.cc). Fills in
// `constants` and `constant_results` of `built`, which must have its plan. Packs come from `packs`;
// missing ones are made in `pool`. Returns a released weight whose elements are needed, if there is
// one; then nothing is filled in. Throws the errors of packing and converting.
[[nodiscard]] std::optional<ReleasedWeight> make_constants(BuiltPlan& built, PackStore& packs,
                                                           ThreadPool& pool);

// The bytes of the constants that steps read in another form than that of the model.
int64_t pack_bytes(const ExecutionPlan& plan);

struct KernelBuild {
  int index = -1;                        // of the candidate among the offers
  const Candidate* candidate = nullptr;  // must have a kernel
  std::optional<StoredKernel> stored;    // saved kernel; if it cannot be loaded, it is built
  std::shared_ptr<SharedKernel> shared;  // taken from there, or put there; null: not shared
  std::optional<std::string> key;        // of StoredKernels, for the judge
  // A released weight that building needs, but loading does not.
  std::optional<ReleasedWeight> released_weight;
  // The result: a kernel, or a sentence that says why there is none; neither if `released_weight`
  // is needed.
  std::shared_ptr<const Kernel> kernel;
  std::string failure;
  int64_t library_bytes = 0;  // memory that its library keeps for it; 0: not known
  bool is_loaded = false;
  bool is_shared = false;  // another plan had it
};

// Called before each kernel that the calling thread builds, with the number of kernels begun before
// it and their total. If it throws, building ends and the exception is rethrown.
using BuildWatcher = std::function<void(size_t done, size_t total)>;

// Builds or loads all kernels, each of which keeps its candidate, and lets `judge` judge compiled
// ones; a kernel that fails is not built. Works in parallel on at most as many threads as `pool`
// has. Each is built in a pool of as many threads as its candidate runs on; libraries on the same
// thread runtime see that number.
//
// KernelBuild::library_bytes is the memory that the candidate announced, plus a share of the memory
// that the process holds beyond that afterwards. All kernels have equal shares, because many are
// built at the same time. Memory that other threads allocate, or libraries allocate only once,
// counts too, so a total below kMinLibraryBytes is ignored.
inline constexpr int64_t kMinLibraryBytes = int64_t{16} << 20;
void build_kernels(std::vector<KernelBuild>& builds, const KernelJudge& judge, ThreadPool& pool,
                   const BuildWatcher& watcher = {});

// The result of building the kernels of a placement. If both members are empty, all are built.
struct AssembledKernels {
  std::vector<int> failed;                        // candidates that cannot be built
  std::optional<ReleasedWeight> released_weight;  // needed to build a kernel
};

// Plans the nested graphs of a node of `graph`. If it is null, nodes with nested graphs are
// refused.
using PlanBodies =
    std::function<std::shared_ptr<PlannedBodies>(const Graph& graph, const Node& node)>;

// Owns the kernels by candidate: placements that share a candidate share its kernel. `pool`,
// `packs`, `in_use` and `stored` must outlive this.
class PlanAssembler {
 public:
  PlanAssembler(ThreadPool& pool, PackStore& packs, const KernelsInUse& in_use,
                const StoredKernels& stored, PlanBodies plan_bodies = {})
      : pool_(pool),
        packs_(packs),
        in_use_(in_use),
        stored_(stored),
        plan_bodies_(std::move(plan_bodies)) {}

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
                    const std::vector<std::vector<double>>& conversion_prices);

  // Fills in the constants, or returns a released weight that this needs. Throws the errors of
  // packing.
  [[nodiscard]] std::optional<ReleasedWeight> pack(BuiltPlan& built) const {
    return make_constants(built, packs_, pool_);
  }

 private:
  std::shared_ptr<PlannedBodies> bodies_of(const Graph& graph, NodeId node);

  ThreadPool& pool_;
  PackStore& packs_;
  const KernelsInUse& in_use_;
  const StoredKernels& stored_;
  PlanBodies plan_bodies_;
  std::map<int, std::shared_ptr<const Kernel>> kernels_;
  std::map<int, std::shared_ptr<PlannedBodies>> bodies_;  // by node
  std::set<int> reused_;                                  // candidates
  std::set<int> loaded_;                                  // candidates
};

// The number of steps that have a kernel.
int count_kernels(const BuiltPlan& built);

}  // namespace tessera
