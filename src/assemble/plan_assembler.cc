#include "assemble/plan_assembler.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/memory/memory.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// Starting a thread takes about as long as building a kernel.
constexpr size_t kMinForOneMoreThread = 4;

// A kernel that keeps its candidate, to which it may refer: plans that share the kernel outlive the
// one for which it was built.
std::shared_ptr<const Kernel> with_candidate(Kernel kernel, const Candidate& candidate) {
  // The kernel is released first.
  struct KernelWithCandidate {
    std::shared_ptr<const Plugin> plugin;
    std::shared_ptr<const tessera_candidate> abi;
    Kernel kernel;
  };
  const auto held = std::make_shared<const KernelWithCandidate>(
      KernelWithCandidate{candidate.plugin, candidate.abi, std::move(kernel)});
  return {held, &held->kernel};
}

bool load(KernelBuild& build) {
  if (!build.stored) return false;
  try {
    build.kernel = with_candidate(build.candidate->load(build.stored->bytes, build.stored->size),
                                  *build.candidate);
  } catch (const Error&) {
    return false;  // it can be built instead
  }
  build.is_loaded = true;
  return true;
}

void load_or_build(KernelBuild& build, const ThreadPool& pool) {
  if (load(build) || build.released_weight) return;
  try {
    build.kernel = with_candidate(build.candidate->build(pool.threads()), *build.candidate);
  } catch (const Error& error) {
    build.failure = "its kernel could not be built: " + error.message();
  }
}

void make(KernelBuild& build, const KernelJudge& judge, ThreadPool& pool) {
  pool.execute([&] { load_or_build(build, pool); });
  if (build.kernel == nullptr || !is_judged(*build.candidate)) return;
  const std::string fault = judge.explain_fault(*build.candidate, build.kernel, build.key, pool);
  if (fault.empty()) return;
  build.kernel = nullptr;
  build.failure = "its compiled kernel failed the check before its first use: " + fault;
}

// Takes the kernel of another plan, or makes it while others that want it wait.
void share_or_make(KernelBuild& build, const KernelJudge& judge, ThreadPool& pool) {
  const std::lock_guard lock(build.shared->mutex);
  build.kernel = build.shared->kernel.lock();
  build.is_shared = build.kernel != nullptr;
  if (build.is_shared) build.library_bytes = build.shared->library_bytes;
  if (build.is_shared) return;
  make(build, judge, pool);
  if (build.kernel == nullptr) return;
  build.shared->kernel = build.kernel;
}

void build_one(KernelBuild& build, const KernelJudge& judge, ThreadPool& pool) {
  if (build.shared != nullptr) {
    share_or_make(build, judge, pool);
  } else {
    make(build, judge, pool);
  }
}

// Takes builds from the list until it is empty. Uses pools of its own: while a library waits during
// a build for the threads of its pool, it must not start to build another kernel.
class Builder {
 public:
  Builder(std::vector<KernelBuild>& builds, const KernelJudge& judge, std::atomic<size_t>& next,
          int threads)
      : builds_(builds), judge_(judge), next_(next), threads_(threads) {}

  void run(const BuildWatcher& watcher = {}) noexcept {
    try {
      ThreadPool all(threads_);
      ThreadPool one(1);
      for (size_t index = next_++; index < builds_.size(); index = next_++) {
        if (watcher) watcher(index, builds_.size());
        build_one(builds_[index], judge_, builds_[index].candidate->threads == 1 ? one : all);
      }
    } catch (...) {
      failure_ = std::current_exception();
      next_ = builds_.size();  // skips the remaining builds
    }
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::vector<KernelBuild>& builds_;
  const KernelJudge& judge_;
  std::atomic<size_t>& next_;
  int threads_;
  std::exception_ptr failure_;
};

void note_library_bytes(std::vector<KernelBuild>& builds, int64_t grown) {
  std::vector<KernelBuild*> made;
  int64_t announced = 0;
  for (KernelBuild& build : builds) {
    if (build.kernel == nullptr || build.is_shared) continue;
    made.push_back(&build);
    announced += build.candidate->library_bytes;
  }
  if (made.empty() || grown - announced < kMinLibraryBytes) return;
  const int64_t share = (grown - announced) / std::ssize(made);
  for (KernelBuild* build : made) {
    build->library_bytes = build->candidate->library_bytes + share;
    if (build->shared == nullptr) continue;
    const std::lock_guard lock(build->shared->mutex);
    build->shared->library_bytes = build->library_bytes;
  }
}

// Empties unused candidates, so the indices of the others stay valid.
void drop_unused(Offers& offers, const Placement& placement) {
  std::vector<bool> is_used(offers.candidates.size(), false);
  for (const int index : placement.chosen) is_used[static_cast<size_t>(index)] = true;
  for (size_t index = 0; index < is_used.size(); ++index) {
    if (!is_used[index]) offers.candidates[index] = {};
  }
}

}  // namespace

void build_kernels(std::vector<KernelBuild>& builds, const KernelJudge& judge, ThreadPool& pool,
                   const BuildWatcher& watcher) {
  if (builds.empty()) return;
  const AllocatedMemory before = allocated_memory();
  const size_t threads =
      std::min(static_cast<size_t>(pool.threads()), 1 + builds.size() / kMinForOneMoreThread);
  std::atomic<size_t> next = 0;
  std::vector<Builder> builders(threads, Builder(builds, judge, next, pool.threads()));
  {
    std::vector<std::jthread> started;
    try {
      for (size_t index = 1; index < threads; ++index) {
        started.emplace_back([&builder = builders[index]] { builder.run(); });
      }
    } catch (const std::system_error&) {
      // The system starts no more threads. The threads that it started build all kernels.
      while (builders.size() > started.size() + 1) builders.pop_back();
    }
    builders.front().run(watcher);
  }
  for (const Builder& builder : builders) builder.rethrow();
  note_library_bytes(builds, grown_bytes(before, allocated_memory()));
}

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
                 .layouts = base.layouts,
                 .max_iterations = base.max_iterations};
  part.offers.refusals = base.offers.refusals;
  part.offers.candidates.resize(base.offers.candidates.size());
  for (const int index : placement.chosen) {
    const auto at = static_cast<size_t>(index);
    part.offers.candidates[at] = base.offers.candidates[at];
  }
  return part;
}

std::shared_ptr<PlannedBodies> PlanAssembler::bodies_of(const Graph& graph, NodeId node) {
  std::shared_ptr<PlannedBodies>& known = bodies_[node.index];
  if (known == nullptr) {
    if (!plan_bodies_) {
      throw Error(ErrorKind::Unsupported, location_of(graph[node]),
                  "its nested graphs cannot be planned here");
    }
    known = plan_bodies_(graph, graph[node]);
  }
  return known;
}

BuiltPlan PlanAssembler::lay_out(BuiltPlan base, const Placement& placement,
                                 std::span<const ValueId> also,
                                 const std::vector<std::vector<double>>& conversion_prices) {
  base.plan = make_plan(base.graph, base.offers, placement, *base.layouts, also, conversion_prices);
  for (const ExecutionStep& step : base.plan.steps) {
    const bool is_kernel = step.kind == ExecutionStep::Kind::Kernel;
    base.kernels.push_back(is_kernel ? kernels_.at(step.candidate) : nullptr);
    if (step.kind != ExecutionStep::Kind::Values) continue;
    const NodeId node = base.offers.candidates[static_cast<size_t>(step.candidate)].nodes.front();
    if (base.graph[node].bodies.empty()) continue;
    base.bodies.resize(base.plan.steps.size());
    base.bodies[base.kernels.size() - 1] = bodies_of(base.graph, node);
  }
  drop_unused(base.offers, placement);
  return base;
}

}  // namespace tessera
