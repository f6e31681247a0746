#include "base/files/file_stamp.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "tessera/error.h"

namespace tessera {
namespace {

constexpr std::chrono::nanoseconds kSettlingTime = std::chrono::seconds(2);

int64_t nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::optional<FileStamp> stamp_from(const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return std::nullopt;
  return FileStamp{.device = status.st_dev,
                   .inode = status.st_ino,
                   .bytes = status.st_size,
                   .modified_ns = nanoseconds(status.st_mtim),
                   .changed_ns = nanoseconds(status.st_ctim)};
}

}  // namespace

std::optional<FileStamp> stamp_of(const std::filesystem::path& file) {
  struct stat status = {};
  if (::stat(file.c_str(), &status) != 0) return std::nullopt;
  return stamp_from(status);
}

std::optional<FileStamp> stamp_of(int descriptor) {
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) return std::nullopt;
  return stamp_from(status);
}

void check_unchanged(std::span<const StampedFile> files) {
  for (const StampedFile& file : files) {
    const std::optional<FileStamp> now = stamp_of(file.path);
    if (!now) fail_changed(file.path, "no file of that name");
    if (*now == file.stamp) continue;
    fail_changed(file.path, now->bytes == file.stamp.bytes
                                ? "another file of the same size"
                                : "a file of " + std::to_string(now->bytes) + " bytes");
  }
}

void fail_changed(const std::filesystem::path& file, const std::string& found) {
  throw Error(ErrorKind::DeviceFailed, "file '" + file.string() + "'",
              "has changed since it was loaded: found " + found + "; load the model again");
}

ReadLease take_read_lease(int descriptor) {
  // The kernel reports a writer's attempt by SIGIO, which ends a process that does not expect it.
  // SIGURG is ignored by default, so it replaces SIGIO until the owner is cleared below.
  ::fcntl(descriptor, F_SETSIG, SIGURG);
  if (::fcntl(descriptor, F_SETLEASE, F_RDLCK) != 0) {
    return errno == EAGAIN ? ReadLease::Writer : ReadLease::Unavailable;
  }
  ::fcntl(descriptor, F_SETOWN, 0);
  return ReadLease::Granted;
}

ReadLease release_read_lease(int descriptor, ReadLease lease) {
  if (lease != ReadLease::Granted) return lease;
  const bool is_held = ::fcntl(descriptor, F_GETLEASE) == F_RDLCK;
  ::fcntl(descriptor, F_SETLEASE, F_UNLCK);
  return is_held ? lease : ReadLease::Writer;
}

int64_t system_time_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

bool is_reliable(const FileStamp& stamp, int64_t time_ns) {
  return std::max(stamp.modified_ns, stamp.changed_ns) <= time_ns - kSettlingTime.count();
}

}  // namespace tessera
