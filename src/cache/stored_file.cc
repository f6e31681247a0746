#include "cache/stored_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/file_handle.h"

namespace tessera::cache {
namespace {

constexpr mode_t kWritableByOthers = S_IWGRP | S_IWOTH;

std::string last_error() { return std::strerror(errno); }

std::filesystem::path folder_of(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.parent_path();
  return folder.empty() ? std::filesystem::path(".") : folder;
}

std::string explain_unsafe_file(const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return "it is no regular file";
  if ((status.st_mode & kWritableByOthers) != 0) {
    return "others than its owner may write to it (chmod go-w)";
  }
  return {};
}

bool is_same_file(const FileHandle& handle, const std::filesystem::path& path) {
  struct stat opened = {};
  struct stat named = {};
  return ::fstat(handle.get(), &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// Of the one process that may write to `path` now; what a killed one left there is gone.
FileHandle open_alone(const std::filesystem::path& path) {
  while (true) {
    FileHandle handle(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644));
    if (!handle.is_open() || ::flock(handle.get(), LOCK_EX) != 0) return FileHandle();
    // While we waited it may have been given its final name.
    if (!is_same_file(handle, path)) continue;
    struct stat status = {};
    if (::fstat(handle.get(), &status) != 0 || ::ftruncate(handle.get(), 0) != 0) {
      return FileHandle();
    }
    if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) {
      errno = EPERM;
      return FileHandle();
    }
    return handle;
  }
}

void sync_folder(const std::filesystem::path& folder) {
  const FileHandle handle(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot; the file is whole in any case.
  if (handle.is_open()) ::fsync(handle.get());
}

}  // namespace

FileText read_stored_file(const std::filesystem::path& file, int64_t most_bytes) {
  // A pipe must not keep us waiting.
  const FileHandle handle(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!handle.is_open()) {
    if (errno == ENOENT || errno == ENOTDIR) return {};
    return {{}, last_error()};
  }
  struct stat status = {};
  if (::fstat(handle.get(), &status) != 0) return {{}, last_error()};
  std::string refusal = explain_unsafe(handle.get(), file);
  if (refusal.empty() && status.st_size > most_bytes) {
    refusal = "it has " + std::to_string(status.st_size) + " bytes, expected at most " +
              std::to_string(most_bytes);
  }
  if (!refusal.empty()) return {{}, refusal};
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t got = ::read(handle.get(), bytes.data() + at, bytes.size() - at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {{}, last_error()};
    if (got == 0) break;  // it became shorter: what is there tells that it is not whole
    at += static_cast<size_t>(got);
  }
  bytes.resize(at);
  return {std::move(bytes), ""};
}

std::string explain_unsafe(int descriptor, const std::filesystem::path& file) {
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) return last_error();
  std::string refusal = explain_unsafe_file(status);
  return refusal.empty() ? explain_unsafe_folder(folder_of(file)) : refusal;
}

std::string explain_unsafe_folder(const std::filesystem::path& folder) {
  struct stat status = {};
  if (::stat(folder.c_str(), &status) != 0) return "'" + folder.string() + "': " + last_error();
  if (!S_ISDIR(status.st_mode)) return "'" + folder.string() + "' is no folder";
  const bool is_sticky = (status.st_mode & S_ISVTX) != 0;
  if ((status.st_mode & kWritableByOthers) != 0 && !is_sticky) {
    return "others than its owner may write to the folder '" + folder.string() + "' (chmod go-w)";
  }
  return {};
}

std::string write_bytes(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return last_error();
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

std::string replace_file(const std::filesystem::path& file,
                         const std::function<std::string()>& make_bytes) {
  return replace_file_by(file,
                         [&](int descriptor) { return write_bytes(descriptor, make_bytes()); });
}

std::string replace_file_by(const std::filesystem::path& file,
                            const std::function<std::string(int descriptor)>& write) {
  const std::filesystem::path folder = folder_of(file);
  const std::filesystem::path staged = folder / ("." + file.filename().string() + ".new");
  const FileHandle handle = open_alone(staged);
  if (!handle.is_open()) return last_error();
  std::string reason = write(handle.get());
  if (reason.empty() && ::fsync(handle.get()) != 0) reason = last_error();
  if (reason.empty() && ::rename(staged.c_str(), file.c_str()) != 0) reason = last_error();
  if (!reason.empty()) {
    ::unlink(staged.c_str());
    return reason;
  }
  sync_folder(folder);
  return {};
}

std::string make_private_folder(const std::filesystem::path& folder) {
  std::error_code failure;
  if (std::filesystem::is_directory(folder, failure)) return {};
  const std::filesystem::path above = folder.parent_path();
  if (!above.empty() && above != folder) {
    const std::string reason = make_private_folder(above);
    if (!reason.empty()) return reason;
  }
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return "'" + folder.string() + "': " + last_error();
}

}  // namespace tessera::cache
