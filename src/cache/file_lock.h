// One process at a time: the others wait, and take over when it dies.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/file_handle.h"

namespace tessera::cache {

// Held by one thread of one process, for as long as it lives; the file is there only meanwhile. The
// system lets go of it when the process ends in whatever way.
class FileLock {
 public:
  FileLock(FileLock&&) noexcept = default;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

  struct Attempt;
  // Does not wait.
  static Attempt try_lock(const std::filesystem::path& file);

 private:
  FileLock(std::filesystem::path path, FileHandle handle);

  std::filesystem::path path_;
  FileHandle handle_;
};

struct FileLock::Attempt {
  std::optional<FileLock> lock;
  std::string holder;   // "process 1234" where another one has it
  std::string failure;  // why nobody can have it: the folder cannot be written to
};

}  // namespace tessera::cache
