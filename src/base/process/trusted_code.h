// Which plug-ins and programs may run in or beside this process if they were found and not named by
// the user. module_folder.h finds programs; backend/catalog/backend_set.h opens plug-ins.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace tessera {

// The users whose code this process runs anyway: its own user, root, and the owner of the program
// or library that contains this code (in a container, root may use a checkout of another user).
std::vector<uid_t> trusted_owners();

// Code that was found. `path` has no links, and nobody but the owners can replace the file, so a
// later open gets the file that was checked.
struct FoundCode {
  std::filesystem::path path;
  std::string refusal;  // why it must not run, or ""
};

// Checks `file` after following its links. Refused unless it is a regular file of one of `owners`
// that nobody else may write to, in a folder with the same properties. The folders above must
// belong to `owners` and must not be writable by everybody, unless they have the sticky bit. A
// group may write if its id equals the owner's (a private group). Access control lists are not
// checked.
FoundCode look_at_code(const std::filesystem::path& file, const std::vector<uid_t>& owners);

// Why code in `folder` is not trusted by the same rules, or "".
std::string explain_untrusted_folder(const std::filesystem::path& folder,
                                     const std::vector<uid_t>& owners);

}  // namespace tessera
