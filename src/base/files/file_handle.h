// Owner of a file descriptor, and how to open a canonical path safely although others may write to
// its folders.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <utility>

namespace tessera {

class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int descriptor) : descriptor_(descriptor) {}
  FileHandle(FileHandle&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~FileHandle() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  int get() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }
  // Gives up ownership of the descriptor.
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

// Opens `path`, which is absolute and canonical, for reading, without following symbolic links in
// any component: a link created since the path was made canonical fails with ELOOP or ENOTDIR. So a
// path inside a folder opens a file inside that folder. The result is not open on failure; errno
// says why. Does not block on pipes.
FileHandle open_without_links(const std::filesystem::path& path);

}  // namespace tessera
