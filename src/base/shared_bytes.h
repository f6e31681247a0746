// Bytes handed to another process without passing through a pipe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/file_handle.h"

namespace tessera {

// Blocks of bytes, one after the other, each in whole pages of its own and ending as FencedPages
// wants it.
struct SharedBytes {
  FileHandle file;               // in memory; nobody can change it any more
  std::vector<int64_t> offsets;  // of each block's pages
};

// Throws OutOfMemory where the machine has not that much, DeviceFailed where it shares none.
SharedBytes share_bytes(std::span<const std::span<const char>> blocks);

// A page of memory that two processes write and read, zeros at first. The file keeps its size,
// whatever the other process does to it.
class SharedPage {
 public:
  static constexpr int64_t kBytes = 4096;

  // Throws DeviceFailed.
  static SharedPage make();
  // The one that another process made, and sent.
  explicit SharedPage(FileHandle file);
  SharedPage(SharedPage&& other) noexcept;
  SharedPage& operator=(SharedPage&&) = delete;
  ~SharedPage();

  void* data() const { return data_; }
  // A descriptor to send.
  FileHandle share() const;

 private:
  FileHandle file_;
  void* data_ = nullptr;
};

}  // namespace tessera
