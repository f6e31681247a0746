#include "assemble/plan_assembler.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tessera/error.h"

namespace tessera {
namespace {

// Empties unused candidates, so the indices of the others stay valid.
void drop_unused(Offers& offers, const Placement& placement) {
  std::vector<bool> is_used(offers.candidates.size(), false);
  for (const int index : placement.chosen) is_used[static_cast<size_t>(index)] = true;
  for (size_t index = 0; index < is_used.size(); ++index) {
    if (!is_used[index]) offers.candidates[index] = {};
  }
}

}  // namespace

AssembledKernels PlanAssembler::build(const Placement& placement, BuiltPlan& base,
                                      const BuildWatcher& watcher) {
  Offers& offers = base.offers;
  std::vector<KernelBuild> builds;
  const auto note_library_bytes = [&](int index, int64_t seen) {
    int64_t& bytes = offers.candidates[static_cast<size_t>(index)].library_bytes;
    bytes = std::max(bytes, seen);
  };
  for (const int index : placement.chosen) {
    const Candidate& candidate = offers.candidates[static_cast<size_t>(index)];
    if (!candidate.has_kernel() || kernels_.contains(index)) continue;
    KernelsInUse::Found in_use = in_use_.find(candidate, base.graph, *base.layouts);
    if (in_use.kernel != nullptr) {
      kernels_.emplace(index, std::move(in_use.kernel));
      note_library_bytes(index, in_use.library_bytes);
      reused_.insert(index);
      continue;
    }
    StoredKernels::Found found = stored_.find(candidate, base.graph, *base.layouts);
    builds.push_back({.index = index,
                      .candidate = &candidate,
                      .stored = std::move(found.stored),
                      .shared = std::move(found.shared),
                      .key = std::move(found.key),
                      .released_weight = find_released_weight(base.graph, candidate.absorbed)});
  }
  const KernelJudge judge(base.graph, *base.layouts, *base.registry, stored_.precision());
  build_kernels(builds, judge, pool_, watcher);
  AssembledKernels result;
  for (KernelBuild& build : builds) {
    if (build.kernel != nullptr) {
      kernels_.emplace(build.index, std::move(build.kernel));
      note_library_bytes(build.index, build.library_bytes);
      if (build.is_loaded) loaded_.insert(build.index);
      if (build.is_shared) reused_.insert(build.index);
      continue;
    }
    if (build.released_weight) {
      result.released_weight = build.released_weight;
      continue;
    }
    result.failed.push_back(build.index);
    const Candidate& candidate = *build.candidate;
    for (const NodeId node : candidate.nodes) {
      offers.refusals.push_back({candidate.preference, candidate.backend(), node, build.failure});
    }
  }
  return result;
}

int PlanAssembler::count_reused(const Placement& placement) const {
  return static_cast<int>(
      std::count_if(placement.chosen.begin(), placement.chosen.end(),
                    [&](int candidate) { return reused_.contains(candidate); }));
}

int PlanAssembler::count_loaded(const Placement& placement) const {
  return static_cast<int>(
      std::count_if(placement.chosen.begin(), placement.chosen.end(),
                    [&](int candidate) { return loaded_.contains(candidate); }));
}

int count_kernels(const BuiltPlan& built) {
  return static_cast<int>(std::count_if(built.kernels.begin(), built.kernels.end(),
                                        [](const auto& kernel) { return kernel != nullptr; }));
}

BuiltPlan PlanAssembler::part_of(const BuiltPlan& base, const Placement& placement) {
  BuiltPlan part{.graph = base.graph,
                 .registry = base.registry,
                 .plugins = base.plugins,
                 .layouts = base.layouts};
  part.offers.refusals = base.offers.refusals;
  part.offers.candidates.resize(base.offers.candidates.size());
  for (const int index : placement.chosen) {
    const auto at = static_cast<size_t>(index);
    part.offers.candidates[at] = base.offers.candidates[at];
  }
  return part;
}

BuiltPlan PlanAssembler::lay_out(BuiltPlan base, const Placement& placement,
                                 std::span<const ValueId> also,
                                 const std::vector<std::vector<double>>& conversion_prices) const {
  base.plan = make_plan(base.graph, base.offers, placement, *base.layouts, also, conversion_prices);
  for (const ExecutionStep& step : base.plan.steps) {
    const bool is_kernel = step.kind == ExecutionStep::Kind::Kernel;
    base.kernels.push_back(is_kernel ? kernels_.at(step.candidate) : nullptr);
  }
  drop_unused(base.offers, placement);
  return base;
}

}  // namespace tessera
