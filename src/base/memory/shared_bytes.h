// Shared memory to pass bytes to another process.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/files/file_handle.h"

namespace tessera {

// Consecutive blocks of bytes. Each occupies whole pages of its own and ends at the position that
// GuardPages expects.
struct SharedBytes {
  FileHandle file;               // in memory and sealed: who receives it cannot change it
  std::vector<int64_t> offsets;  // of each block's first page
};

// Holds blocks for another process, which only reads them, one set after the other. It keeps its
// pages, because getting new ones takes longer than filling them.
class SharedArena {
 public:
  SharedArena() = default;
  SharedArena(const SharedArena&) = delete;
  SharedArena& operator=(const SharedArena&) = delete;
  ~SharedArena();

  // Copies the blocks; those of earlier calls are overwritten. Throws OutOfMemory if the memory
  // does not suffice, DeviceFailed if it cannot be shared.
  SharedBytes store(std::span<const std::span<const char>> blocks);

 private:
  void make_room(int64_t bytes);
  void release();

  FileHandle file_;
  char* data_ = nullptr;
  int64_t bytes_ = 0;
};

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
