#include "assemble/build_kernels.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>

#include "base/memory.h"
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

}  // namespace tessera
