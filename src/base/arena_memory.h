// One large piece of memory for as long as its owner lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace tessera {

// Begins at a multiple of a page; on huge pages where it is large and the system grants them. All
// of it is touched when it is made, so that no later use waits for a page.
class ArenaMemory {
 public:
  ArenaMemory() = default;
  // `bytes` of 0 gives an address too. is_null() afterwards where the system has none left.
  explicit ArenaMemory(int64_t bytes);
  ArenaMemory(ArenaMemory&& other) noexcept
      : mapping_(std::exchange(other.mapping_, nullptr)),
        mapped_bytes_(std::exchange(other.mapped_bytes_, 0)),
        data_(std::exchange(other.data_, nullptr)) {}
  ArenaMemory& operator=(ArenaMemory&& other) noexcept {
    std::swap(mapping_, other.mapping_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~ArenaMemory();

  bool is_null() const { return data_ == nullptr; }
  char* data() const { return data_; }

 private:
  void* mapping_ = nullptr;
  size_t mapped_bytes_ = 0;
  char* data_ = nullptr;
};

}  // namespace tessera
