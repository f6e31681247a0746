#include "base/recycled_memory.h"

#include <mutex>
#include <utility>

namespace tessera {
namespace {

// Smaller memory comes from pages that the process has touched already.
constexpr int64_t kMinBytes = int64_t{64} << 10;

}  // namespace

struct RecycledMemory::Unused {
  std::mutex mutex;
  Tensor tensor;

  Tensor exchange(Tensor other) {
    const std::lock_guard lock(mutex);
    return std::exchange(tensor, std::move(other));
  }
};

RecycledMemory::RecycledMemory() : unused_(std::make_shared<Unused>()) {}

Tensor RecycledMemory::take(DataType type, const std::vector<int64_t>& dims) {
  if (tensor_bytes(type, dims) < kMinBytes) return Tensor(type, dims);
  Tensor memory = unused_->exchange(Tensor());
  if (memory.is_empty() || memory.type() != type || memory.dims() != dims) {
    memory = Tensor();  // before other memory is allocated
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
