#include "base/scratch_memory.h"

#include <algorithm>
#include <bit>
#include <new>

#include "base/check.h"
#include "tessera/tensor.h"

namespace tessera {
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

}  // namespace tessera
