// Memory between pages that nobody may touch: who reads or writes beside it ends the process.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera {

// `bytes` of memory (0 too) whose last page is followed, and whose first one is preceded, by a page
// without any rights. data() is a multiple of kAlignmentBytes as close to the second fence as that
// allows: at most kAlignmentBytes - 1 bytes lie between them.
class FencedPages {
 public:
  static constexpr int64_t kAlignmentBytes = 64;

  // Zeros that can be read and written. Throws OutOfMemory.
  explicit FencedPages(int64_t bytes);
  // What share_bytes() stored at `offset` of `file`, to be read only: who writes to it ends the
  // process. Throws DeviceFailed where it is not there.
  FencedPages(int64_t bytes, int file, int64_t offset);
  FencedPages(FencedPages&& other) noexcept;
  FencedPages& operator=(FencedPages&& other) noexcept;
  ~FencedPages();

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  // What can be touched around data().
  int64_t slack_before() const { return data_ - pages_; }
  int64_t slack_after() const { return pages_bytes_ - slack_before() - bytes_; }

  // From now on, writing ends the process.
  void forbid_writing();

  // Bytes of whole pages that this many bytes take, without the fences.
  static int64_t pages_for(int64_t bytes);

 private:
  void reserve();

  std::byte* reserved_ = nullptr;  // with both fences
  std::byte* pages_ = nullptr;
  int64_t pages_bytes_ = 0;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace tessera
