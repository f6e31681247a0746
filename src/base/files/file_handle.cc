#include "base/files/file_handle.h"

#include <fcntl.h>

#include <cerrno>

namespace tessera {

FileHandle open_without_links(const std::filesystem::path& path) {
  if (!path.is_absolute()) {
    errno = EINVAL;
    return FileHandle();
  }
  // One openat() per folder. openat2() with RESOLVE_NO_SYMLINKS would do it in one call, but
  // sandboxes and kernels before 5.6 do not have it.
  constexpr int kFolder = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  FileHandle folder(::open("/", kFolder));
  for (const std::filesystem::path& part : path.parent_path().relative_path()) {
    if (!folder.is_open()) return FileHandle();
    folder = FileHandle(::openat(folder.get(), part.c_str(), kFolder));
  }
  if (!folder.is_open()) return FileHandle();
  const std::filesystem::path name = path.has_filename() ? path.filename() : ".";
  return FileHandle(
      ::openat(folder.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
}

}  // namespace tessera
