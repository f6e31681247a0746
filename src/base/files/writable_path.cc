#include "base/files/writable_path.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace tessera {
namespace {

namespace fs = std::filesystem;

std::string quoted(const fs::path& path) { return "'" + path.string() + "'"; }

// For a folder that exists.
std::string explain_closed_folder(const fs::path& folder) {
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return "";
  return "files cannot be written into the folder " + quoted(folder) + ": " +
         std::generic_category().message(errno);
}

// The innermost part of `path` that exists, perhaps "." or "/".
fs::path existing_part(fs::path path) {
  std::error_code ignored;
  while (!path.empty() && !fs::exists(path, ignored)) {
    const fs::path parent = path.parent_path();
    if (parent == path) break;
    path = parent;
  }
  return path.empty() ? fs::path(".") : path;
}

// Why the folders from `path` up to `existing`, which are missing, cannot be created; "" if nothing
// is known. Links that lead nowhere, or in a circle, look missing too, and so do names that are too
// long.
std::string explain_uncreatable_parts(fs::path path, const fs::path& existing) {
  while (!path.empty() && path != existing) {
    std::error_code failure;
    const fs::file_type type = fs::symlink_status(path, failure).type();
    if (type == fs::file_type::symlink) return quoted(path) + " is a link that leads nowhere";
    if (type == fs::file_type::none) return quoted(path) + ": " + failure.message();
    const fs::path parent = path.parent_path();
    if (parent == path) break;
    path = parent;
  }
  return "";
}

}  // namespace

std::string explain_unwritable_folder(const fs::path& folder) {
  std::error_code ignored;
  const fs::path existing = existing_part(folder);
  std::string reason = explain_uncreatable_parts(folder, existing);
  if (!reason.empty()) return reason;
  if (!fs::is_directory(existing, ignored)) return quoted(existing) + " is a file, not a folder";
  return explain_closed_folder(existing);
}

std::string explain_unwritable_file(const fs::path& file) {
  std::error_code failure;
  const fs::file_type type = fs::status(file, failure).type();
  if (type == fs::file_type::directory) return quoted(file) + " is a folder, not a file";
  if (type == fs::file_type::none) return failure.message();
  if (file.filename().empty()) return "expected the name of a file";
  if (type != fs::file_type::not_found && type != fs::file_type::regular) return "";
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  const fs::path existing = existing_part(folder);
  if (!fs::is_directory(existing, failure)) return quoted(existing) + " is a file, not a folder";
  if (!fs::is_directory(folder, failure)) {
    return "the folder " + quoted(folder) + " does not exist; create it first";
  }
  return explain_closed_folder(folder);
}

}  // namespace tessera
