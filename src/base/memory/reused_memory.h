// Memory that an executor keeps from run to run: the arena, scratch memory of kernels, and memory
// of outputs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <utility>
#include <vector>

#include "base/memory/memory.h"
#include "base/threads/parallel.h"
#include "tessera/tensor.h"

namespace tessera {

// One large block of memory that lives as long as its owner. data() is aligned to a page. Large
// blocks use huge pages if the system grants them. The threads of `pool` touch every page during
// construction, so that later uses cause no page faults.
class ArenaMemory {
 public:
  ArenaMemory() = default;
  // 0 `bytes` give an address too. is_null() is true afterwards if the system has no memory left.
  ArenaMemory(int64_t bytes, ThreadPool& pool);
  ArenaMemory(ArenaMemory&& other) noexcept
      : mapping_(std::exchange(other.mapping_, nullptr)),
        mapped_bytes_(std::exchange(other.mapped_bytes_, 0)),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  ArenaMemory& operator=(ArenaMemory&& other) noexcept {
    std::swap(mapping_, other.mapping_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~ArenaMemory();

  bool is_null() const { return data_ == nullptr; }
  char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

  // Replaces the block by one of `bytes` with unspecified contents. Releases the old block before
  // it touches the new one, so that the pages of both are never resident at once. Returns false and
  // changes nothing if the system has no memory left.
  bool replace(int64_t bytes, ThreadPool& pool);

 private:
  void map(int64_t bytes);
  void touch(ThreadPool& pool);

  void* mapping_ = nullptr;
  size_t mapped_bytes_ = 0;
  char* data_ = nullptr;
  int64_t bytes_ = 0;
};

// Temporary memory. Allocates blocks of power-of-two sizes and keeps each returned block for the
// next request of its size. So repeated work finds all its memory here, whatever its order of
// allocation and deallocation. Holds, for each size, as many blocks as were ever in use at once.
// Thread-safe. All blocks must be returned before destruction.
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

// Memory of tensors of one type and size, which is reused when no tensor refers to it. To touch
// new pages for the first time takes longer than to write to them. Keeps the memory of one tensor
// at most that is not in use. Tensors may outlive this object. Thread-safe, except that take() is
// called by one thread at a time.
class RecycledMemory {
 public:
  // `available` gives the bytes that the process could still allocate; tests substitute it.
  explicit RecycledMemory(int64_t (*available)() = available_memory_bytes);

  // The only reference to a tensor, whose values are arbitrary. Small tensors, and those of another
  // type or size than the one before, are new. Throws OutOfMemory, for large tensors before the
  // system has to end the process.
  Tensor take(DataType type, const std::vector<int64_t>& dims);

 private:
  struct Unused;

  int64_t (*available_)();
  std::shared_ptr<Unused> unused_;
};

}  // namespace tessera
