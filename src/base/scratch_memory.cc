#include "base/scratch_memory.h"

#include <algorithm>
#include <bit>
#include <new>

#include "base/check.h"
#include "tessera/tensor.h"

namespace tessera {
namespace {

// Also the smallest block, so that no two threads write to one line of the cache.
constexpr size_t kAlignment = kTensorAlignmentBytes;

// From here on it is asked whether the machine has it, which takes some microseconds.
constexpr size_t kLargeBytes = size_t{1} << 24;

size_t block_bytes(size_t bytes) { return std::bit_ceil(std::max(bytes, kAlignment)); }

size_t place_of(size_t bytes) { return static_cast<size_t>(std::countr_zero(block_bytes(bytes))); }

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
  // Above this there is no power of two.
  if (bytes > size_t{1} << (std::numeric_limits<size_t>::digits - 1)) throw std::bad_alloc();
  {
    const std::scoped_lock lock(mutex_);
    Block*& first = unused_[place_of(bytes)];
    if (first != nullptr) {
      Block* const block = first;
      first = block->next;
      return block;
    }
  }
  const bool is_large = bytes >= kLargeBytes;
  if (is_large && bytes > static_cast<uint64_t>(std::max<int64_t>(available_(), 0))) {
    throw std::bad_alloc();
  }
  return ::operator new(block_bytes(bytes), std::align_val_t{kAlignment});
}

void ScratchMemory::do_deallocate(void* memory, size_t bytes, size_t /*alignment*/) {
  const std::scoped_lock lock(mutex_);
  Block*& first = unused_[place_of(bytes)];
  first = new (memory) Block{first};
}

}  // namespace tessera
