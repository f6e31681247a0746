// One large block of memory that lives as long as its owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/parallel.h"

namespace tessera {

// data() is aligned to a page. Large blocks use huge pages if the system grants them. The threads
// of `pool` touch every page during construction, so that later uses cause no page faults.
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

}  // namespace tessera
