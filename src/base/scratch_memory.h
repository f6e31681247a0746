// Temporary memory that is kept for its next use.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <memory_resource>
#include <mutex>

namespace tessera {

// Gives blocks whose sizes are powers of two, and keeps each one that comes back for the next who
// asks for that size: work that is done again finds all its memory there, in whatever order it asks
// and gives back. What it holds is, for each size, the most blocks that were ever in use at once.
// From any thread. All blocks must be back when it goes.
class ScratchMemory : public std::pmr::memory_resource {
 public:
  ScratchMemory() = default;
  ScratchMemory(const ScratchMemory&) = delete;
  ScratchMemory& operator=(const ScratchMemory&) = delete;
  ~ScratchMemory() override;

 private:
  // A block that is not in use begins with the way to the next one of its size.
  struct Block {
    Block* next = nullptr;
  };

  // Throws std::bad_alloc where the system has none left.
  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void* memory, size_t bytes, size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  std::mutex mutex_;
  // By the logarithm of their size.
  std::array<Block*, std::numeric_limits<size_t>::digits> unused_ = {};
};

}  // namespace tessera
