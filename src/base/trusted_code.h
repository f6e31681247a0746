// Which plug-ins and programs that were found, not named by the user, may run in this process or
// beside it. module_folder.h finds programs; backend/backend_set.h opens plug-ins.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace tessera {

// Whose code this process runs anyway: its own user, root, and the owner of the program or library
// that this code is in (the user whose checkout the root of a container uses).
std::vector<uid_t> trusted_owners();

// Where code was found. `path` has no links, and nobody but the owners can put another file there:
// what is opened by it later is what was looked at.
struct FoundCode {
  std::filesystem::path path;
  std::string refusal;  // why it is not run, "" if it may be
};

// `file`, where its links lead. Refused unless it is a regular file of one of `owners` that nobody
// else may write to, in a folder for which the same is true; the folders above must belong to
// `owners` too and not be writable by everybody, unless with the sticky bit. A group may write
// where its number is the owner's (his private group). Access control lists are not looked at.
FoundCode look_at_code(const std::filesystem::path& file, const std::vector<uid_t>& owners);

// Why no code is taken from `folder` by the same rule; "" if it may be.
std::string explain_untrusted_folder(const std::filesystem::path& folder,
                                     const std::vector<uid_t>& owners);

}  // namespace tessera
