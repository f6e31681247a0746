#include "cache/user_key.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/files/file_handle.h"
#include "cache/stored_file.h"

namespace tessera::cache {
namespace {

using KeyBytes = std::array<uint8_t, 32>;

std::string system_error() { return std::strerror(errno); }

FoundKey read_key(const std::filesystem::path& file) {
  // O_NONBLOCK: opening a pipe must not block.
  const FileHandle handle(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!handle.is_open()) return {{}, "the key '" + file.string() + "': " + system_error()};
  struct stat status = {};
  if (::fstat(handle.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return {{}, "the key '" + file.string() + "' is no file"};
  }
  if (status.st_uid != ::geteuid() || (status.st_mode & 0077) != 0) {
    return {{},
            "the key '" + file.string() +
                "' is refused: it must belong to this user, and nobody else may read or write it "
                "(mode 0600)"};
  }
  KeyBytes bytes = {};
  const bool is_whole = status.st_size == ssize_t{bytes.size()} &&
                        ::read(handle.get(), bytes.data(), bytes.size()) == ssize_t{bytes.size()};
  if (!is_whole) {
    return {{}, "the key '" + file.string() + "' is damaged: expected 32 bytes; remove it"};
  }
  return {UserKey(bytes), ""};
}

// Creates the file completely or not at all, and never replaces an existing one.
std::string write_key(const std::filesystem::path& file) {
  KeyBytes bytes = {};
  if (::getrandom(bytes.data(), bytes.size(), 0) != ssize_t{bytes.size()}) return system_error();
  std::string staged = file.string() + ".XXXXXX";
  {
    const FileHandle handle(::mkostemp(staged.data(), O_CLOEXEC));
    if (!handle.is_open()) return system_error();
    const bool is_written =
        ::write(handle.get(), bytes.data(), bytes.size()) == ssize_t{bytes.size()} &&
        ::fsync(handle.get()) == 0;
    if (!is_written) {
      const std::string reason = system_error();
      ::unlink(staged.c_str());
      return reason;
    }
  }
  const bool is_linked = ::link(staged.c_str(), file.c_str()) == 0 || errno == EEXIST;
  const std::string reason = is_linked ? "" : system_error();
  ::unlink(staged.c_str());
  return reason;
}

}  // namespace

Mac UserKey::authenticate(std::span<const char> head, std::span<const char> rest) const {
  return digest_of(head, rest, bytes_);
}

FoundKey find_or_make_key(const std::filesystem::path& folder) {
  const std::string unsafe = explain_foreign_folder(folder);
  if (!unsafe.empty()) return {{}, unsafe};
  const std::filesystem::path file = folder / "key";
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::symlink_status(file, ignored))) {
    const std::string reason = write_key(file);
    if (!reason.empty()) {
      return {{}, "the key '" + file.string() + "' could not be made: " + reason};
    }
  }
  return read_key(file);
}

std::optional<UserKey> find_key(const std::filesystem::path& folder) {
  std::error_code failure;
  if (folder.empty() || !std::filesystem::exists(folder / "key", failure)) return std::nullopt;
  return find_or_make_key(folder).key;
}

std::optional<UserKey> make_key(const std::filesystem::path& folder) {
  if (folder.empty() || !make_private_folder(folder).empty()) return std::nullopt;
  return find_or_make_key(folder).key;
}

}  // namespace tessera::cache
