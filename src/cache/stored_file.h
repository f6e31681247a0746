// Reads files that others may have modified, by strict rules, and replaces files atomically: a
// reader sees either the old or the new contents, even after a crash.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/files/file_handle.h"
#include "base/files/file_stamp.h"

namespace tessera::cache {

struct FileText {
  std::optional<std::string>
      bytes;  // nullopt: there is no such file, or `refusal` says why it was not read
  std::string refusal;
};

// How the file to read was chosen.
enum class Chosen {
  // Found by its name in a folder. The file must belong to this user or root, be no link and have
  // one name only, because anybody can put files into folders such as /tmp.
  ByTessera,
  // Named by the user.
  ByUser,
};

// Reads `file` if nobody but its owner can change or replace it: neither the file nor its folder
// may be writable by the group or by others (except a folder with the sticky bit). Also refuses
// anything but a regular file, and, before any allocation, more than `max_bytes`. All checks apply
// to the open file, never to its name.
FileText read_stored_file(const std::filesystem::path& file, int64_t max_bytes,
                          Chosen chosen = Chosen::ByTessera);

// A file that was opened by the rules of read_stored_file(). If it is not open, `refusal` says why;
// "" if there is no such file.
struct OpenedFile {
  FileHandle handle;
  std::string refusal;
};
OpenedFile open_stored_file(const std::filesystem::path& file, Chosen chosen = Chosen::ByTessera);

// Why the open file could change while it is mapped: others than this user and root may write to
// it.
// "" if they may not.
std::string explain_changeable(int descriptor);

// Marks the file as used by this process while the result lives, so that other processes do not
// remove it to free space. Not open if marking fails.
FileHandle hold_in_use(const std::filesystem::path& file);
// Whether any process has marked the file as used.
bool is_in_use(const std::filesystem::path& file);

// Why files in `folder` are not trusted; "" if they are.
std::string explain_unsafe_folder(const std::filesystem::path& folder);

// Why `folder` does not belong to this user alone; "" if it does. A missing folder does not.
std::string explain_foreign_folder(const std::filesystem::path& folder);

// Writes the bytes from `make_bytes` to a temporary file beside `file`, syncs it, renames it to
// `file`, and syncs the folder. Concurrent writers wait for one another, for some seconds at most,
// before calling `make_bytes`, which may read the current contents. Returns the reason of a
// failure, or ""; on failure `file` is unchanged.
std::string replace_file(const std::filesystem::path& file,
                         const std::function<std::string()>& make_bytes);

// Whether a file survives if the machine fails soon after it was written.
enum class Durability : uint8_t {
  Synced,
  // Not synced, which takes most of the time of a small file. Only for files that authenticate what
  // they hold, and that are made again if they are missing.
  Unsynced
};

// The result of replacing a file: the reason of a failure, or "" and the file's stamp, which shows
// later whether somebody has written to the file since.
struct ReplacedFile {
  std::string refusal;
  std::optional<FileStamp> stamp;
};

// Same as replace_file(), for contents too large for memory: `write` writes to the open file and
// returns the reason of a failure, or "".
ReplacedFile replace_file_by(const std::filesystem::path& file,
                             const std::function<std::string(int descriptor)>& write,
                             Durability durability = Durability::Synced);

// Writes all bytes at the current position of the file. Returns the reason of a failure, or "".
std::string write_bytes(int descriptor, std::string_view bytes);

// Creates the folder and missing parents, accessible to this user only (mode 0700). Returns the
// reason of a failure, or "".
std::string make_private_folder(const std::filesystem::path& folder);

}  // namespace tessera::cache
