// Memory that detects out-of-bounds writes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/guard_pages.h"

namespace tessera::verification {

// The protection around memory.
enum class Guard : uint8_t {
  Bytes,  // guard bytes that are checked later
  // Guard bytes, as far as alignment leaves space for them, and then guard pages: any access to
  // those, even a read, ends the process. For processes that may end.
  Pages,
};

// `bytes` of memory with guards on both sides. Its start is a multiple of `alignment_bytes` (a
// power of two between 1 and the page size). With Guard::Bytes it is not a multiple of a larger
// power of two, so that a kernel that relies on more alignment than it asked for fails.
class GuardedMemory {
 public:
  static constexpr int64_t kGuardBytes = 512;

  GuardedMemory(int64_t bytes, int64_t alignment_bytes, uint8_t fill, Guard guard = Guard::Bytes);
  // A copy of `contents`.
  GuardedMemory(std::span<const char> contents, int64_t alignment_bytes,
                Guard guard = Guard::Bytes);
  // Refers to `contents`, which `owner` keeps alive, without a copy: they are in read-only pages
  // between guard pages.
  GuardedMemory(std::span<const char> contents, std::shared_ptr<const void> owner);

  // With Guard::Pages: makes the pages read-only, so a write ends the process from now on.
  void forbid_writing() {
    if (pages_) pages_->forbid_writing();
  }

  char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  std::span<const char> contents() const { return {data_, static_cast<size_t>(bytes_)}; }

  // "" if all guard bytes are intact, else the damage: "writes 3 bytes before its start", "writes
  // up to byte 130 of 128".
  std::string explain_damage() const;

 private:
  void place(int64_t alignment_bytes, Guard guard);
  void lay_out_in_bytes(int64_t alignment_bytes);
  void lay_out_in_pages(int64_t alignment_bytes);

  int64_t bytes_;
  std::unique_ptr<char[]> memory_;     // for Guard::Bytes
  std::optional<GuardPages> pages_;    // for Guard::Pages
  std::shared_ptr<const void> owner_;  // of existing read-only pages
  char* data_ = nullptr;
  int64_t guard_bytes_before_ = kGuardBytes;
  int64_t guard_bytes_after_ = kGuardBytes;
};

}  // namespace tessera::verification
