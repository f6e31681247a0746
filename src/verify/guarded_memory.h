// Memory that shows who wrote beside it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/fenced_pages.h"

namespace tessera::verification {

// What is around memory.
enum class Guard : uint8_t {
  Bytes,  // that are looked at later
  // Those, as far as alignment leaves room for any, and behind them what nobody may touch: who
  // does, even by reading, ends the process. For a process that may end.
  Pages,
};

// `bytes` of memory with guards on both sides. Its start is a multiple of `alignment_bytes` (a
// power of two, at least 1 and no more than a page), and with Guard::Bytes of no larger power of
// two, so that a kernel which counts on more than it asked for fails.
class GuardedMemory {
 public:
  static constexpr int64_t kGuardBytes = 512;

  GuardedMemory(int64_t bytes, int64_t alignment_bytes, uint8_t fill, Guard guard = Guard::Bytes);
  // A copy of `contents`.
  GuardedMemory(std::span<const char> contents, int64_t alignment_bytes,
                Guard guard = Guard::Bytes);
  // No copy: `contents`, which `owner` keeps, lie between pages that nobody may touch, in pages
  // that nobody may write to.
  GuardedMemory(std::span<const char> contents, std::shared_ptr<const void> owner);

  // With Guard::Pages: from now on, writing ends the process.
  void forbid_writing() {
    if (pages_) pages_->forbid_writing();
  }

  char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  std::span<const char> contents() const { return {data_, static_cast<size_t>(bytes_)}; }

  // "" where all guard bytes are as they were, else which one is not: "writes 3 bytes before its
  // start", "writes up to byte 130 of 128".
  std::string explain_damage() const;

 private:
  void place(int64_t alignment_bytes, Guard guard);
  void place_in_bytes(int64_t alignment_bytes);
  void place_in_pages(int64_t alignment_bytes);

  int64_t bytes_;
  std::unique_ptr<char[]> memory_;     // of Guard::Bytes
  std::optional<FencedPages> pages_;   // of Guard::Pages
  std::shared_ptr<const void> owner_;  // of what was fenced before
  char* data_ = nullptr;
  int64_t guard_bytes_before_ = kGuardBytes;
  int64_t guard_bytes_after_ = kGuardBytes;
};

}  // namespace tessera::verification
