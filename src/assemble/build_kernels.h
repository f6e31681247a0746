// Many kernels, built at once.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assemble/stored_kernels.h"
#include "backend/candidates.h"
#include "base/parallel.h"
#include "graph/released_weight.h"

namespace tessera {

struct KernelBuild {
  int index = -1;                        // of the candidate among the offers
  const Candidate* candidate = nullptr;  // which has a kernel
  std::optional<StoredKernel> stored;    // the kernel as it was saved; where it cannot be loaded it
                                         // is built
  // A weight without which it cannot be built, only loaded.
  std::optional<ReleasedWeight> released_weight;
  // The result: a kernel, or why there is none, in a sentence; neither where `released_weight` is
  // needed.
  std::shared_ptr<const Kernel> kernel;
  std::string failure;
  bool is_loaded = false;
};

// Told before each kernel that the calling thread builds: how many were begun before it, and of how
// many. What it throws ends the building.
using BuildWatcher = std::function<void(size_t done, size_t total)>;

// Builds all of them on as many threads as `pool` has; each for the threads that its candidate runs
// on, and where libraries on the same thread runtime see so many.
void build_kernels(std::vector<KernelBuild>& builds, ThreadPool& pool,
                   const BuildWatcher& watcher = {});

}  // namespace tessera
