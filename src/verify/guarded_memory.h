// Memory that detects out-of-bounds writes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/memory/guard_pages.h"

namespace tessera::verification {

// Fills the bytes around a buffer: `before` those in front of it, the nearest one last, and `after`
// those behind it.
void fill_guard(std::span<char> before, std::span<char> after);

// "" if these bytes around a buffer of `bytes` are as fill_guard() left them, else the damage:
// "writes 3 bytes before its start", "writes up to byte 130 of 128".
std::string explain_guard(std::span<const char> before, std::span<const char> after, int64_t bytes);

// `bytes` of memory with guard bytes on both sides, which are checked later. Its start is a
// multiple of `alignment_bytes` (a power of two between 1 and the page size), but not of a larger
// power of two, so that a kernel that relies on more alignment than it asked for fails. With
// `pages`, which must outlive it, there are guard bytes as far as alignment leaves space for them,
// and then guard pages: any access to those, even a read, ends the process. For processes that may
// end.
class GuardedMemory {
 public:
  static constexpr int64_t kGuardBytes = 512;

  GuardedMemory(int64_t bytes, int64_t alignment_bytes, uint8_t fill,
                GuardPagePool* pages = nullptr);
  // A copy of `contents`.
  GuardedMemory(std::span<const char> contents, int64_t alignment_bytes,
                GuardPagePool* pages = nullptr);
  // Refers to `contents`, which `owner` keeps alive, without a copy: they are in read-only pages
  // between guard pages.
  GuardedMemory(std::span<const char> contents, std::shared_ptr<const void> owner);

  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory();

  // With guard pages: makes its pages read-only, so a write ends the process from now on.
  void forbid_writing() {
    if (pages_) pages_->forbid_writing();
  }

  char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  std::span<const char> contents() const { return {data_, static_cast<size_t>(bytes_)}; }

  // The result of explain_guard().
  std::string explain_damage() const;

 private:
  void place(int64_t alignment_bytes);
  void lay_out_in_bytes(int64_t alignment_bytes);
  void lay_out_in_pages(int64_t alignment_bytes);

  int64_t bytes_;
  GuardPagePool* pool_ = nullptr;
  std::unique_ptr<char[]> memory_;     // without guard pages
  std::optional<GuardPages> pages_;    // from `pool_`
  std::shared_ptr<const void> owner_;  // of existing read-only pages
  char* data_ = nullptr;
  int64_t guard_bytes_before_ = kGuardBytes;
  int64_t guard_bytes_after_ = kGuardBytes;
};

// `bytes` of memory that take only a few pages of the machine, for kernels on tensors that are
// larger than its memory. All pieces of kPieceBytes but the last one are the same pages: what is
// written to one is written to all. On both sides are guard bytes, which are checked later.
class RepeatedMemory {
 public:
  static constexpr int64_t kPieceBytes = int64_t{1} << 20;
  static constexpr int64_t kGuardBytes = 4096;  // on each side

  // Begins with the `pattern` of kPieceBytes, again and again. Begins at a page. Throws
  // OutOfMemory.
  RepeatedMemory(int64_t bytes, std::span<const char> pattern);
  ~RepeatedMemory();
  RepeatedMemory(const RepeatedMemory&) = delete;
  RepeatedMemory& operator=(const RepeatedMemory&) = delete;

  char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  // "" if all guard bytes are intact, else the damage, as GuardedMemory describes it.
  std::string explain_damage() const;

 private:
  int64_t bytes_;
  int64_t mapped_bytes_;
  char* mapped_ = nullptr;
  char* data_ = nullptr;
};

}  // namespace tessera::verification
