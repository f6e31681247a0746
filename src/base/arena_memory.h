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

  // Other memory of `bytes`, whatever was in it; the old one is gone before the new one is touched,
  // so that no page of both is there at once. False where the system has none: then all is as it
  // was.
  bool replace(int64_t bytes);

 private:
  void map(int64_t bytes);
  void touch();

  void* mapping_ = nullptr;
  size_t mapped_bytes_ = 0;
  char* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace tessera
