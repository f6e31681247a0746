#include "base/process/trusted_code.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/process/module_folder.h"

namespace tessera {
namespace {

std::string in_quotes(const std::filesystem::path& path) { return "'" + path.string() + "'"; }

std::string explain_owner(const std::filesystem::path& path, const struct stat& status,
                          const std::vector<uid_t>& owners) {
  if (std::find(owners.begin(), owners.end(), status.st_uid) != owners.end()) return {};
  return in_quotes(path) + " belongs to another user (number " + std::to_string(status.st_uid) +
         "), expected one of this user, of root, or of the owner of the program";
}

bool is_written_by_group(const struct stat& status) {
  return (status.st_mode & S_IWGRP) != 0 && status.st_gid != status.st_uid;
}

// Why a folder that contains code, or (`is_above`) a folder above it, is not trusted. A group may
// write to folders above, as some systems allow in /usr/local.
std::string explain_folder(const std::filesystem::path& folder, bool is_above,
                           const std::vector<uid_t>& owners) {
  struct stat status = {};
  if (::lstat(folder.c_str(), &status) != 0) return in_quotes(folder) + ": " + std::strerror(errno);
  // The path had no links before, so somebody else has just created this one.
  if (!S_ISDIR(status.st_mode)) return in_quotes(folder) + " is no folder";
  std::string refusal = explain_owner(folder, status, owners);
  if (!refusal.empty()) return refusal;
  // In a folder with the sticky bit nobody can remove or rename files of others.
  if ((status.st_mode & S_ISVTX) != 0) return {};
  if ((status.st_mode & S_IWOTH) != 0 || (!is_above && is_written_by_group(status))) {
    return "others than its owner may write to the folder " + in_quotes(folder) + " (chmod go-w)";
  }
  return {};
}

// Checks from the root down, so that other users can no longer replace what was already
// checked. `folder` has no links.
std::string explain_folders(const std::filesystem::path& folder, const std::vector<uid_t>& owners) {
  std::filesystem::path above;
  for (const std::filesystem::path& part : folder) {
    above /= part;
    std::string refusal = explain_folder(above, above != folder, owners);
    if (!refusal.empty()) return refusal;
  }
  return {};
}

std::string explain_file(const std::filesystem::path& file, const std::vector<uid_t>& owners) {
  struct stat status = {};
  if (::lstat(file.c_str(), &status) != 0) return in_quotes(file) + ": " + std::strerror(errno);
  if (!S_ISREG(status.st_mode)) return in_quotes(file) + " is no regular file";
  std::string refusal = explain_owner(file, status, owners);
  if (!refusal.empty()) return refusal;
  if ((status.st_mode & S_IWOTH) != 0 || is_written_by_group(status)) {
    return "others than its owner may write to " + in_quotes(file) + " (chmod go-w)";
  }
  return {};
}

}  // namespace

std::vector<uid_t> trusted_owners() {
  std::vector<uid_t> owners = {::geteuid(), 0};
  struct stat status = {};
  if (::stat(module_file().c_str(), &status) == 0) owners.push_back(status.st_uid);
  return owners;
}

FoundCode look_at_code(const std::filesystem::path& file, const std::vector<uid_t>& owners) {
  std::error_code failure;
  FoundCode found = {.path = std::filesystem::canonical(file, failure), .refusal = ""};
  if (failure) return {file, in_quotes(file) + ": " + failure.message()};
  found.refusal = explain_folders(found.path.parent_path(), owners);
  if (found.refusal.empty()) found.refusal = explain_file(found.path, owners);
  return found;
}

std::string explain_untrusted_folder(const std::filesystem::path& folder,
                                     const std::vector<uid_t>& owners) {
  std::error_code failure;
  const std::filesystem::path real = std::filesystem::canonical(folder, failure);
  if (failure) return in_quotes(folder) + ": " + failure.message();
  return explain_folders(real, owners);
}

}  // namespace tessera
