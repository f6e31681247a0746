#include "base/recycled_memory.h"

#include <mutex>
#include <string>
#include <utility>

#include "base/fork.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// Smaller memory comes from pages that the process has touched already.
constexpr int64_t kMinBytes = int64_t{64} << 10;

}  // namespace

struct RecycledMemory::Unused {
  std::mutex mutex;
  Tensor tensor;

  Tensor exchange(Tensor other) {
    const ForkSafeLock lock(mutex);
    return std::exchange(tensor, std::move(other));
  }
};

RecycledMemory::RecycledMemory(int64_t (*available)())
    : available_(available), unused_(std::make_shared<Unused>()) {}

Tensor RecycledMemory::take(DataType type, const std::vector<int64_t>& dims) {
  const int64_t bytes = tensor_bytes(type, dims);
  if (bytes < kMinBytes) return Tensor(type, dims);
  Tensor memory = unused_->exchange(Tensor());
  if (memory.is_empty() || memory.type() != type || memory.dims() != dims) {
    memory = Tensor();  // before other memory is allocated
    const int64_t available = bytes < kLargeAllocationBytes ? bytes : available_();
    if (bytes > available) {
      throw Error(ErrorKind::OutOfMemory, "output " + dims_text(dims),
                  "expected to allocate at most the " + std::to_string(available) +
                      " bytes that are available, found a need of " + std::to_string(bytes) +
                      " bytes");
    }
    memory = Tensor(type, dims);
  }
  void* const data = memory.mutable_data();
  std::shared_ptr<void> owner(
      data, [place = std::weak_ptr<Unused>(unused_), memory = std::move(memory)](void*) mutable {
        if (const std::shared_ptr<Unused> unused = place.lock()) {
          unused->exchange(std::move(memory));
        }
      });
  return Tensor::owning(type, dims, std::move(owner), data);
}

}  // namespace tessera
