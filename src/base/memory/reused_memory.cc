#include "base/memory/reused_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "base/errors/check.h"
#include "base/memory/huge_pages.h"
#include "base/memory/round_up.h"
#include "base/threads/fork.h"
#include "tessera/error.h"
#include "tessera/tensor.h"

namespace tessera {
namespace {

constexpr size_t kPageBytes = 4096;

size_t used_bytes(int64_t bytes) {
  return round_up(static_cast<size_t>(std::max<int64_t>(bytes, 1)), kPageBytes);
}

void touch_pages(char* start, size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  // One system call for all pages, if the system supports it.
  if (madvise(start, bytes, MADV_POPULATE_WRITE) == 0) return;
#endif
  for (size_t page = 0; page < bytes; page += kPageBytes) {
    static_cast<volatile char*>(start)[page] = 0;
  }
}

}  // namespace

ArenaMemory::ArenaMemory(int64_t bytes, ThreadPool& pool) {
  map(bytes);
  touch(pool);
}

bool ArenaMemory::replace(int64_t bytes, ThreadPool& pool) {
  ArenaMemory other;
  other.map(bytes);
  if (other.is_null()) return false;
  *this = ArenaMemory(std::move(other));
  touch(pool);
  return true;
}

void ArenaMemory::map(int64_t bytes) {
  const size_t used = used_bytes(bytes);
  const bool is_large = used >= kHugePageBytes;
  // Leaves room to align data() to the size of a huge page.
  const size_t mapped = is_large ? used + kHugePageBytes - kPageBytes : used;
  void* mapping = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return;
  mapping_ = mapping;
  mapped_bytes_ = mapped;
  bytes_ = bytes;
  data_ = static_cast<char*>(mapping);
  if (is_large) {
    const auto address = reinterpret_cast<uintptr_t>(mapping);
    data_ += round_up(address, kHugePageBytes) - address;
    ask_for_huge_pages(data_, used);
  }
}

void ArenaMemory::touch(ThreadPool& pool) {
  if (is_null()) return;
  // One thread touches each huge page.
  const size_t used = used_bytes(bytes_);
  const auto parts = static_cast<int64_t>(round_up(used, kHugePageBytes) / kHugePageBytes);
  pool.parallel_for(parts, 1, [&](int64_t first, int64_t last) {
    const size_t begin = static_cast<size_t>(first) * kHugePageBytes;
    const size_t end = std::min(used, static_cast<size_t>(last) * kHugePageBytes);
    touch_pages(data_ + begin, end - begin);
  });
}

ArenaMemory::~ArenaMemory() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_bytes_);
}

namespace {

// Also the smallest block size, so that no two threads write to the same cache line.
constexpr size_t kAlignment = kTensorAlignmentBytes;

size_t block_bytes(size_t bytes) { return std::bit_ceil(std::max(bytes, kAlignment)); }

size_t size_class(size_t bytes) {
  return static_cast<size_t>(std::countr_zero(block_bytes(bytes)));
}

}  // namespace

ScratchMemory::~ScratchMemory() {
  for (Block* block : unused_) {
    while (block != nullptr) {
      Block* const next = block->next;
      ::operator delete(block, std::align_val_t{kAlignment});
      block = next;
    }
  }
}

void* ScratchMemory::do_allocate(size_t bytes, size_t alignment) {
  TESSERA_CHECK(alignment <= kAlignment, "no kernel needs more than tensors have");
  // Larger sizes have no power of two above them.
  if (bytes > size_t{1} << (std::numeric_limits<size_t>::digits - 1)) throw std::bad_alloc();
  {
    const std::scoped_lock lock(mutex_);
    Block*& first = unused_[size_class(bytes)];
    if (first != nullptr) {
      Block* const block = first;
      first = block->next;
      return block;
    }
  }
  const bool is_large = bytes >= static_cast<size_t>(kLargeAllocationBytes);
  if (is_large && bytes > static_cast<uint64_t>(std::max<int64_t>(available_(), 0))) {
    throw std::bad_alloc();
  }
  void* const block = ::operator new(block_bytes(bytes), std::align_val_t{kAlignment});
  const std::scoped_lock lock(mutex_);
  bytes_ += static_cast<int64_t>(block_bytes(bytes));
  return block;
}

void ScratchMemory::do_deallocate(void* memory, size_t bytes, size_t /*alignment*/) {
  const std::scoped_lock lock(mutex_);
  Block*& first = unused_[size_class(bytes)];
  first = new (memory) Block{first};
}

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
