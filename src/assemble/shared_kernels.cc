#include "assemble/shared_kernels.h"

#include <algorithm>

#include "base/threads/fork.h"

namespace tessera {

std::shared_ptr<SharedKernel> SharedKernels::of(const std::string& key, const Plugin* plugin) {
  const ForkSafeLock lock(mutex_);
  if (kernels_.size() >= next_drop_) drop_unused();
  std::shared_ptr<SharedKernel>& kernel = kernels_[{key, plugin}];
  if (kernel == nullptr) kernel = std::make_shared<SharedKernel>();
  return kernel;
}

// Drops kernels that only this map has, so no thread can get them. Seldom called, so of() is fast.
void SharedKernels::drop_unused() {
  std::erase_if(kernels_, [](const auto& item) {
    return item.second.use_count() == 1 && item.second->kernel.expired();
  });
  next_drop_ = std::max<size_t>(next_drop_, 2 * kernels_.size());
}

}  // namespace tessera
