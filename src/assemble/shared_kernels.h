// The kernels of all models of a process, so that models which contain the same region have one
// kernel for it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "backend/candidates.h"
#include "backend/contract/kernel.h"
#include "base/threads/fork.h"

namespace tessera {

// One kernel, as long as some plan uses it.
struct SharedKernel {
  LongHeldMutex mutex;  // held while the kernel is built, for which others wait
  std::weak_ptr<const Kernel> kernel;
  int64_t library_bytes = 0;  // that its library was seen to keep; 0: not known
};

// Thread-safe.
class SharedKernels {
 public:
  // The place of the kernel with this key of StoredKernels, which covers everything that a kernel
  // depends on. Plug-ins that were opened twice do not share.
  std::shared_ptr<SharedKernel> of(const std::string& key, const Plugin* plugin);

 private:
  void drop_unused();

  std::mutex mutex_;
  std::map<std::pair<std::string, const Plugin*>, std::shared_ptr<SharedKernel>> kernels_;
  size_t next_drop_ = 64;  // the number of kernels at which unused ones are dropped
};

}  // namespace tessera
