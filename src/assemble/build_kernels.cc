#include "assemble/build_kernels.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

#include "tessera/error.h"

namespace tessera {
namespace {

// Starting a thread takes about as long as building a kernel.
constexpr size_t kMinForOneMoreThread = 4;

bool load(KernelBuild& build) {
  if (!build.stored) return false;
  try {
    build.kernel = std::make_shared<const Kernel>(
        build.candidate->load(build.stored->bytes, build.stored->size));
  } catch (const Error&) {
    return false;  // it can be built instead
  }
  build.is_loaded = true;
  return true;
}

void load_or_build(KernelBuild& build, const ThreadPool& pool) {
  if (load(build) || build.released_weight) return;
  try {
    build.kernel = std::make_shared<const Kernel>(build.candidate->build(pool.threads()));
  } catch (const Error& error) {
    build.failure = "its kernel could not be built: " + error.message();
  }
}

// Takes the kernel of another plan, or makes it while others that want it wait.
void share_or_build(KernelBuild& build, const ThreadPool& pool) {
  const std::lock_guard lock(build.shared->mutex);
  build.kernel = build.shared->kernel.lock();
  build.is_shared = build.kernel != nullptr;
  if (build.is_shared) return;
  load_or_build(build, pool);
  if (build.kernel == nullptr) return;
  build.kernel = with_candidate(std::move(build.kernel), *build.candidate);
  build.shared->kernel = build.kernel;
}

void build_one(KernelBuild& build, ThreadPool& pool) {
  pool.execute([&] {
    if (build.shared != nullptr) {
      share_or_build(build, pool);
    } else {
      load_or_build(build, pool);
    }
  });
}

// Takes builds from the list until it is empty. Uses pools of its own: while a library waits during
// a build for the threads of its pool, it must not start to build another kernel.
class Builder {
 public:
  Builder(std::vector<KernelBuild>& builds, std::atomic<size_t>& next, int threads)
      : builds_(builds), next_(next), threads_(threads) {}

  void run(const BuildWatcher& watcher = {}) noexcept {
    try {
      ThreadPool all(threads_);
      ThreadPool one(1);
      for (size_t index = next_++; index < builds_.size(); index = next_++) {
        if (watcher) watcher(index, builds_.size());
        build_one(builds_[index], builds_[index].candidate->threads == 1 ? one : all);
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
  std::atomic<size_t>& next_;
  int threads_;
  std::exception_ptr failure_;
};

}  // namespace

void build_kernels(std::vector<KernelBuild>& builds, ThreadPool& pool,
                   const BuildWatcher& watcher) {
  const size_t threads =
      std::min(static_cast<size_t>(pool.threads()), 1 + builds.size() / kMinForOneMoreThread);
  std::atomic<size_t> next = 0;
  std::vector<Builder> builders(threads, Builder(builds, next, pool.threads()));
  {
    std::vector<std::jthread> started;
    for (size_t index = 1; index < threads; ++index) {
      started.emplace_back([&builder = builders[index]] { builder.run(); });
    }
    builders.front().run(watcher);
  }
  for (const Builder& builder : builders) builder.rethrow();
}

}  // namespace tessera
