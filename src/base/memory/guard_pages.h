// Memory between guard pages: a read or write outside of it ends the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace tessera {

// `bytes` of memory (0 too) with one inaccessible page before the first page and one after the last
// page. data() is a multiple of kAlignmentBytes and as close to the second guard page as that
// allows: at most kAlignmentBytes - 1 bytes lie between them.
class GuardPages {
 public:
  static constexpr int64_t kAlignmentBytes = 64;

  // Zero-filled, readable and writable. Throws OutOfMemory.
  explicit GuardPages(int64_t bytes);
  // Maps what SharedArena stored at `offset` of `file`, read-only: a write ends the process.
  // Throws DeviceFailed if the file does not contain it.
  GuardPages(int64_t bytes, int file, int64_t offset);
  GuardPages(GuardPages&& other) noexcept;
  GuardPages& operator=(GuardPages&& other) noexcept;
  ~GuardPages();

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  // Accessible bytes before and after the data.
  int64_t slack_before() const { return data_ - pages_; }
  int64_t slack_after() const { return pages_bytes_ - slack_before() - bytes_; }

  // Makes the pages read-only: from now on a write ends the process.
  void forbid_writing();
  // Places `bytes` of the same number of pages here instead, with any contents, writable. Only for
  // pages that are not of a file.
  void reuse_for(int64_t bytes);
  // Without the guard pages.
  int64_t pages_bytes() const { return pages_bytes_; }

  // Size in bytes of the whole pages that hold `bytes`, without the guard pages.
  static int64_t pages_for(int64_t bytes);

 private:
  void reserve();
  void place(int64_t bytes);

  std::byte* reserved_ = nullptr;  // with both guard pages
  std::byte* pages_ = nullptr;
  int64_t pages_bytes_ = 0;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
  bool is_read_only_ = false;
};

// Guard pages that were used before, for others of the same size: the kernel takes longer to find
// and clear new pages than a check to fill them. For one thread.
class GuardPagePool {
 public:
  // With any contents. Throws OutOfMemory.
  GuardPages take(int64_t bytes);
  void give_back(GuardPages pages);

 private:
  std::deque<GuardPages> unused_;  // the oldest first
  int64_t unused_bytes_ = 0;
};

}  // namespace tessera
