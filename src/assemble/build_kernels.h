// Builds many kernels in parallel.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assemble/kernel_judge.h"
#include "assemble/stored_kernels.h"
#include "backend/candidates.h"
#include "base/parallel.h"
#include "graph/released_weight.h"

namespace tessera {

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

}  // namespace tessera
