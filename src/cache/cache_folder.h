// Which file of a folder belongs to a fingerprint: the last 7 digits of it name the file, or more
// of them where another fingerprint ends alike.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/cache_file.h"

namespace tessera::cache {

// "89abcde.cache" for 7 digits.
std::string file_name(const Fingerprint& fingerprint, size_t digits);

struct FoundCache {
  std::optional<CacheFile> file;
  std::filesystem::path path;  // of the file, or of the one that was there and could not be used
  std::string reason;          // why none was found
};

// The file of `folder` with these ingredients. What is damaged, foreign, or may have been changed
// by others is as if it were not there, with a reason.
FoundCache find_in_folder(const std::filesystem::path& folder,
                          std::span<const Ingredient> ingredients, const UserKey* key);

struct SavedCache {
  std::filesystem::path path;
  std::string reason;  // why it was not saved, or ""
};

// Puts the sections of `file` into the file of the same fingerprint in `folder`, or makes one.
// Other sections stay as they are. A damaged file that has the name is replaced.
SavedCache save_in_folder(const std::filesystem::path& folder, const CacheFile& file,
                          const UserKey* key);

// Puts them into `path`, whose other sections stay where it has the same fingerprint; else it is
// replaced. Gives why it could not be, or "".
std::string save_in_file(const std::filesystem::path& path, const CacheFile& file,
                         const UserKey* key);

// The file `path`. Throws InvalidArgument where there is none that may be read, Corrupt and
// Unsupported as decode() does.
CacheFile read_cache_file(const std::filesystem::path& path, const UserKey* key);

// All files of `folder` whose names are those of caches, sorted.
std::vector<std::filesystem::path> list_folder(const std::filesystem::path& folder);

}  // namespace tessera::cache
