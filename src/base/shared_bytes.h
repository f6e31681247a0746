// Shared memory to pass bytes to another process.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/file_handle.h"

namespace tessera {

// Consecutive blocks of bytes. Each occupies whole pages of its own and ends at the position that
// GuardPages expects.
struct SharedBytes {
  FileHandle file;               // in memory and sealed: nobody can change it
  std::vector<int64_t> offsets;  // of each block's first page
};

// Throws OutOfMemory if the memory does not suffice, DeviceFailed if it cannot be shared.
SharedBytes share_bytes(std::span<const std::span<const char>> blocks);

// A page of memory that two processes read and write, zero-filled at first. The file is sealed, so
// neither process can change its size.
class SharedPage {
 public:
  static constexpr int64_t kBytes = 4096;

  // Throws DeviceFailed.
  static SharedPage make();
  // Maps the page that another process made and sent.
  explicit SharedPage(FileHandle file);
  SharedPage(SharedPage&& other) noexcept;
  SharedPage& operator=(SharedPage&&) = delete;
  ~SharedPage();

  void* data() const { return data_; }
  // Duplicates the descriptor to send it.
  FileHandle share() const;

 private:
  FileHandle file_;
  void* data_ = nullptr;
};

}  // namespace tessera
