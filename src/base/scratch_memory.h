// Temporary memory that is kept for its next use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory_resource>
#include <mutex>

#include "base/memory.h"

namespace tessera {

// Gives blocks whose sizes are powers of two, and keeps each one that comes back for the next who
// asks for that size: work that is done again finds all its memory there, in whatever order it asks
// and gives back. What it holds is, for each size, the most blocks that were ever in use at once.
// From any thread. All blocks must be back when it goes.
class ScratchMemory : public std::pmr::memory_resource {
 public:
  // `available` says how many bytes the process could still allocate; a test may have another one.
  explicit ScratchMemory(int64_t (*available)() = available_memory_bytes) : available_(available) {}
  ScratchMemory(const ScratchMemory&) = delete;
  ScratchMemory& operator=(const ScratchMemory&) = delete;
  ~ScratchMemory() override;

 private:
  // A block that is not in use begins with the way to the next one of its size.
  struct Block {
    Block* next = nullptr;
  };

  // Throws std::bad_alloc where the system has none left. Of large blocks that is asked before: it
  // grants more than it has, and ends the process that then writes there.
  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void* memory, size_t bytes, size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  int64_t (*available_)();
  std::mutex mutex_;
  // By the logarithm of their size.
  std::array<Block*, std::numeric_limits<size_t>::digits> unused_ = {};
};

}  // namespace tessera
