// Files that others may have touched: which are read at all, and how one is replaced so that a
// reader finds the old one or the new one, whatever happens in between.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_handle.h"

namespace tessera::cache {

struct FileText {
  std::optional<std::string> bytes;  // nullopt: there is no such file, or `refusal` says why not
  std::string refusal;
};

// Who chose the file that is read.
enum class Chosen {
  // By its name, in a folder where it was looked for. Only what this user or root owns counts,
  // under
  // one name alone, which is no link: anybody may put something into a folder such as /tmp.
  ByTessera,
  // By the user, who named it.
  ByUser,
};

// Reads `file` where nobody but its owner may change it, nor put another one in its place: neither
// the file nor its folder may be writable by its group or by others (a folder with the sticky bit
// may). Refused too: what is no regular file, and more than `most_bytes`, before anything is
// allocated. All of it is asked of the file that is open, never of its name.
FileText read_stored_file(const std::filesystem::path& file, int64_t most_bytes,
                          Chosen chosen = Chosen::ByTessera);

// Opens it by the rules of Chosen::ByTessera. Not open: `refusal` says why, "" where there is none.
struct OpenedFile {
  FileHandle handle;
  std::string refusal;
};
OpenedFile open_stored_file(const std::filesystem::path& file, Chosen chosen = Chosen::ByTessera);

// Has others know that this process uses the file, as long as what is given lives: they do not
// remove it to make room. Not open where it cannot be told.
FileHandle hold_in_use(const std::filesystem::path& file);
// Whether some process does.
bool is_in_use(const std::filesystem::path& file);

// Which rule keeps files in `folder` from being trusted; "" for none.
std::string explain_unsafe_folder(const std::filesystem::path& folder);

// Why a folder cannot be this user's own, for what nobody else may have a hand in; "" where it is.
// A folder that is not there is not.
std::string explain_foreign_folder(const std::filesystem::path& folder);

// Writes what `make_bytes` gives to a file beside `file`, syncs it, gives it the name, and syncs
// the folder. Where two do so at once, one waits for the other, some seconds at most, before it
// calls `make_bytes`, which may read what is there. Gives why it could not be, or ""; `file` is as
// it was then.
std::string replace_file(const std::filesystem::path& file,
                         const std::function<std::string()>& make_bytes);

// The same for what is too much to hold in memory: `write` writes to the open file, and gives why
// it could not, or "".
std::string replace_file_by(const std::filesystem::path& file,
                            const std::function<std::string(int descriptor)>& write);

// Writes all of it at the file's place. Gives why it could not be, or "".
std::string write_bytes(int descriptor, std::string_view bytes);

// Makes the folder and those above it that are missing, for this user alone (mode 0700). Gives why
// it could not be, or "".
std::string make_private_folder(const std::filesystem::path& folder);

}  // namespace tessera::cache
