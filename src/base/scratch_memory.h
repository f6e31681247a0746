// Temporary memory that is kept for reuse.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory_resource>
#include <mutex>

#include "base/memory.h"

namespace tessera {

// Allocates blocks of power-of-two sizes and keeps each returned block for the next request of its
// size. So repeated work finds all its memory here, whatever its order of allocation and
// deallocation. Holds, for each size, as many blocks as were ever in use at once. Thread-safe. All
// blocks must be returned before destruction.
class ScratchMemory : public std::pmr::memory_resource {
 public:
  // `available` gives the bytes that the process could still allocate; tests substitute it.
  explicit ScratchMemory(int64_t (*available)() = available_memory_bytes) : available_(available) {}
  ScratchMemory(const ScratchMemory&) = delete;
  ScratchMemory& operator=(const ScratchMemory&) = delete;
  ~ScratchMemory() override;

  // The size of all blocks, in use or not.
  int64_t bytes() const {
    const std::scoped_lock lock(mutex_);
    return bytes_;
  }

 private:
  // An unused block begins with the pointer to the next unused block of its size.
  struct Block {
    Block* next = nullptr;
  };

  // Throws std::bad_alloc if the system has no memory left. Large blocks check that beforehand,
  // because the system overcommits and ends a process that then touches the memory.
  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void* memory, size_t bytes, size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  int64_t (*available_)();
  mutable std::mutex mutex_;
  int64_t bytes_ = 0;
  // Indexed by the logarithm of the block size.
  std::array<Block*, std::numeric_limits<size_t>::digits> unused_ = {};
};

}  // namespace tessera
