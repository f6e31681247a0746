#include "cache/stored_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

#include "base/threads/fork.h"

namespace tessera::cache {
namespace {

// How long to wait for another process that writes the same file.
constexpr auto kMaxWait = std::chrono::seconds(5);
constexpr auto kPollTime = std::chrono::milliseconds(5);
constexpr mode_t kWritableByOthers = S_IWGRP | S_IWOTH;

std::string last_error() { return std::strerror(errno); }

std::filesystem::path folder_of(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.parent_path();
  return folder.empty() ? std::filesystem::path(".") : folder;
}

std::string explain_unsafe_file(const struct stat& status, Chosen chosen) {
  if (!S_ISREG(status.st_mode)) return "it is no regular file";
  if ((status.st_mode & kWritableByOthers) != 0) {
    return "others than its owner may write to it (chmod go-w)";
  }
  if (chosen == Chosen::ByUser) return {};
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    return "it belongs to user " + std::to_string(status.st_uid) +
           ", expected one of this user's or of root's";
  }
  // With a second hard link, somebody else may read or remove the file through it.
  if (status.st_nlink != 1) {
    return "it has " + std::to_string(status.st_nlink) + " names, expected 1 (a hard link)";
  }
  return {};
}

std::string explain_unsafe(int descriptor, const std::filesystem::path& file, Chosen chosen) {
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) return last_error();
  std::string refusal = explain_unsafe_file(status, chosen);
  return refusal.empty() ? explain_unsafe_folder(folder_of(file)) : refusal;
}

bool is_same_file(const FileHandle& handle, const std::filesystem::path& path) {
  struct stat opened = {};
  struct stat named = {};
  return ::fstat(handle.get(), &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// Whether the lock was acquired in time.
bool lock_in_time(int descriptor) {
  const auto end = std::chrono::steady_clock::now() + kMaxWait;
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return false;
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(kPollTime);
  }
  return true;
}

// Why the open file must not be written by us, or "".
std::string explain_foreign_file(int descriptor) {
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) return last_error();
  if (!S_ISREG(status.st_mode)) return "it is no regular file";
  if (status.st_uid == ::geteuid()) return {};
  return "it belongs to user " + std::to_string(status.st_uid);
}

struct StagedFile {
  FileHandle handle;
  std::string refusal;
};

// Opens the staged file of `path` exclusively, removing what a killed process left in it. Checks
// the owner before it waits for the lock, so that users who can only read the file cannot block us.
StagedFile open_exclusively(const std::filesystem::path& path) {
  while (true) {
    FileHandle handle(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644));
    if (!handle.is_open()) return {FileHandle(), last_error()};
    std::string refusal = explain_foreign_file(handle.get());
    if (!refusal.empty()) return {FileHandle(), "'" + path.string() + "': " + refusal};
    if (!lock_in_time(handle.get())) {
      if (errno == EWOULDBLOCK) {
        return {FileHandle(), "another process keeps '" + path.string() + "' locked"};
      }
      // If locking is not supported, nobody else holds the lock either.
      StagedFile failed{FileHandle(), last_error()};
      ::unlink(path.c_str());
      return failed;
    }
    // While we waited, the previous holder may have renamed it to its final name.
    if (!is_same_file(handle, path)) continue;
    int cut = -1;
    do cut = ::ftruncate(handle.get(), 0);
    while (cut != 0 && errno == EINTR);
    if (cut != 0) {
      StagedFile failed{FileHandle(), last_error()};
      ::unlink(path.c_str());
      return failed;
    }
    return {std::move(handle), ""};
  }
}

void sync_folder(const std::filesystem::path& folder) {
  const FileHandle handle(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems do not support fsync; the file is complete in any case.
  if (handle.is_open()) ::fsync(handle.get());
}

}  // namespace

OpenedFile open_stored_file(const std::filesystem::path& file, Chosen chosen) {
  const int links = chosen == Chosen::ByUser ? 0 : O_NOFOLLOW;
  // O_NONBLOCK: opening a pipe must not block.
  OpenedFile opened{FileHandle(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | links)),
                    ""};
  if (!opened.handle.is_open()) {
    if (errno == ENOENT || errno == ENOTDIR) return opened;
    opened.refusal = errno == ELOOP && links != 0 ? "it is a symbolic link" : last_error();
    return opened;
  }
  opened.refusal = explain_unsafe(opened.handle.get(), file, chosen);
  if (!opened.refusal.empty()) opened.handle = FileHandle();
  return opened;
}

std::string explain_changeable(int descriptor) {
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) return last_error();
  // A file with several names is owned and written to under the same rules by each of them.
  status.st_nlink = 1;
  return explain_unsafe_file(status, Chosen::ByTessera);
}

FileHandle hold_in_use(const std::filesystem::path& file) {
  OpenedFile opened = open_stored_file(file);
  if (!opened.handle.is_open() || ::flock(opened.handle.get(), LOCK_SH | LOCK_NB) != 0) return {};
  return std::move(opened.handle);
}

bool is_in_use(const std::filesystem::path& file) {
  const OpenedFile opened = open_stored_file(file);
  return opened.handle.is_open() && ::flock(opened.handle.get(), LOCK_EX | LOCK_NB) != 0 &&
         errno == EWOULDBLOCK;
}

FileText read_stored_file(const std::filesystem::path& file, int64_t max_bytes, Chosen chosen) {
  const auto [handle, refusal] = open_stored_file(file, chosen);
  if (!handle.is_open()) return {{}, refusal};
  struct stat status = {};
  if (::fstat(handle.get(), &status) != 0) return {{}, last_error()};
  if (status.st_size > max_bytes) {
    return {{},
            "it has " + std::to_string(status.st_size) + " bytes, expected at most " +
                std::to_string(max_bytes)};
  }
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t got = ::read(handle.get(), bytes.data() + at, bytes.size() - at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {{}, last_error()};
    if (got == 0) break;  // the file became shorter; decoding will report that
    at += static_cast<size_t>(got);
  }
  bytes.resize(at);
  return {std::move(bytes), ""};
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

std::string explain_foreign_folder(const std::filesystem::path& folder) {
  struct stat status = {};
  if (::stat(folder.c_str(), &status) != 0) return "'" + folder.string() + "': " + last_error();
  if (status.st_uid == ::geteuid()) return explain_unsafe_folder(folder);
  return "the folder '" + folder.string() + "' belongs to user " + std::to_string(status.st_uid);
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
  const auto write = [&](int descriptor) { return write_bytes(descriptor, make_bytes()); };
  return replace_file_by(file, write).refusal;
}

ReplacedFile replace_file_by(const std::filesystem::path& file,
                             const std::function<std::string(int descriptor)>& write,
                             Durability durability) {
  const std::filesystem::path folder = folder_of(file);
  const std::filesystem::path staged = folder / ("." + file.filename().string() + ".new");
  // Threads of this process wait for each other as long as it takes, so flock() tells only of other
  // processes. A fork waits, because a new process would keep the file locked.
  const Turn turn("file " + std::filesystem::absolute(staged).lexically_normal().string());
  const NoForkSection section;
  const auto [handle, refusal] = open_exclusively(staged);
  if (!handle.is_open()) return {refusal, std::nullopt};
  std::string reason;
  try {
    reason = write(handle.get());
  } catch (...) {
    ::unlink(staged.c_str());
    throw;
  }
  const bool is_synced = durability == Durability::Synced;
  if (reason.empty() && is_synced && ::fsync(handle.get()) != 0) reason = last_error();
  if (reason.empty() && ::rename(staged.c_str(), file.c_str()) != 0) reason = last_error();
  if (!reason.empty()) {
    ::unlink(staged.c_str());
    return {reason, std::nullopt};
  }
  if (is_synced) sync_folder(folder);
  return {"", stamp_of(handle.get())};
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
