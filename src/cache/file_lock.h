// Mutual exclusion of processes through a file. If the holder dies, a waiting process gets the
// lock.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/files/file_handle.h"

namespace tessera::cache {

// Held by one thread of one process during the object's lifetime; the file exists only meanwhile.
// The system releases the lock whenever the process ends. A process that is forked meanwhile does
// not hold it.
class FileLock {
 public:
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

  struct Attempt;
  // Does not block.
  static Attempt try_lock(const std::filesystem::path& file);

 private:
  FileLock(std::filesystem::path path, FileHandle handle);

  std::filesystem::path path_;
  FileHandle handle_;
  uint32_t held_after_forks_;
};

struct FileLock::Attempt {
  std::optional<FileLock> lock;
  std::string holder;   // "process 1234", or "another thread of this process"
  std::string failure;  // why nobody can hold it: for example, the folder is not writable
};

}  // namespace tessera::cache
