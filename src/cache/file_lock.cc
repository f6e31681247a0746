#include "cache/file_lock.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#include "base/threads/fork.h"

namespace tessera::cache {
namespace {

bool has_name(const FileHandle& handle, const std::filesystem::path& path) {
  struct stat opened = {};
  struct stat named = {};
  return ::fstat(handle.get(), &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// The holder writes its process id into the file, for people only.
std::string holder_of(const FileHandle& handle) {
  std::array<char, 16> digits{};
  const ssize_t got = ::pread(handle.get(), digits.data(), digits.size(), 0);
  int64_t number = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + (got > 0 ? got : 0), number);
  if (error != std::errc() || number <= 0) return "another process";
  if (number == ::getpid()) return "another thread of this process";
  return "process " + std::to_string(number);
}

// The descriptors of all locks of this process. A forked process has copies of them, which would
// keep the locks held when the parent has died.
struct HeldDescriptors {
  HeldDescriptors() {
    ::pthread_atfork(nullptr, nullptr, [] {
      for (const int descriptor : held_descriptors().all) ::close(descriptor);
      held_descriptors().all.clear();
    });
  }
  static HeldDescriptors& held_descriptors() {
    static HeldDescriptors& held = *new HeldDescriptors;  // never destroyed: a thread may hold one
    return held;
  }

  std::mutex mutex;
  std::set<int> all;
};

}  // namespace

FileLock::FileLock(std::filesystem::path path, FileHandle handle)
    : path_(std::move(path)), handle_(std::move(handle)), held_after_forks_(fork_count()) {
  HeldDescriptors& held = HeldDescriptors::held_descriptors();
  const ForkSafeLock lock(held.mutex);
  held.all.insert(handle_.get());
}

FileLock::FileLock(FileLock&& other) noexcept = default;

FileLock::~FileLock() {
  if (!handle_.is_open()) return;
  if (held_after_forks_ != fork_count()) {
    handle_.release();  // it was closed
    return;
  }
  {
    HeldDescriptors& held = HeldDescriptors::held_descriptors();
    const ForkSafeLock lock(held.mutex);
    held.all.erase(handle_.get());
  }
  // Unlinks before it unlocks: a waiting process then sees that the file has no name any more and
  // creates another.
  ::unlink(path_.c_str());
}

FileLock::Attempt FileLock::try_lock(const std::filesystem::path& file) {
  while (true) {
    FileHandle handle(
        ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    if (!handle.is_open()) return {{}, "", std::strerror(errno)};
    // A file of another user must not block us.
    struct stat status = {};
    if (::fstat(handle.get(), &status) != 0 || status.st_uid != ::geteuid()) {
      return {{}, "", "it belongs to another user"};
    }
    if (::flock(handle.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK) return {{}, holder_of(handle), ""};
      const std::string failure = std::strerror(errno);
      // If locking is not supported, nobody else holds the lock either.
      ::unlink(file.c_str());
      return {{}, "", failure};
    }
    // Its last holder may have removed it after we opened it.
    if (!has_name(handle, file)) continue;
    const std::string number = std::to_string(::getpid()) + "\n";
    // The contents are for people only, so a failure to write them, as on a full disk, does not
    // matter. Truncating causes a write to the disk on close, which is slow, so it is skipped for
    // new and empty files, which most are.
    if (status.st_size == 0 || ::ftruncate(handle.get(), 0) == 0) {
      [[maybe_unused]] const ssize_t written =
          ::pwrite(handle.get(), number.data(), number.size(), 0);
    }
    return {FileLock(file, std::move(handle)), "", ""};
  }
}

}  // namespace tessera::cache
