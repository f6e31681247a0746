// Which file of a folder belongs to a fingerprint: the last 7 digits of it name the file, or more
// of them where another fingerprint ends alike.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/cache_file.h"

namespace tessera::cache {

// Of files of packs (pack_file.h).
constexpr const char* kPacksEnding = ".packs";

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

// So many of a type and content are kept: plans, of shapes and options; prices, of versions of a
// library. The newest stay.
void drop_oldest(CacheFile& file);

struct SavedCache {
  std::filesystem::path path;
  std::string reason;  // why it was not saved, or ""
};

// Puts the sections of `file` into the file of the same fingerprint in `folder`, or makes one.
// Other sections stay as they are, as long as there are not too many of a kind: then the oldest go.
// A damaged file that has the name is replaced.
// `merge` says what becomes of a section that is there already, null: it is replaced.
using MergeSections = std::function<Section(const Section& present, Section added)>;
SavedCache save_in_folder(const std::filesystem::path& folder, const CacheFile& file,
                          const UserKey* key, const MergeSections& merge = nullptr);

// Puts them into `path`, whose other sections stay where it has the same fingerprint; else it is
// replaced. Gives why it could not be, or "".
std::string save_in_file(const std::filesystem::path& path, const CacheFile& file,
                         const UserKey* key, const MergeSections& merge = nullptr);

// The file `path`, which the user has named. Throws InvalidArgument where there is none that may be
// read, Corrupt and Unsupported as decode() does.
CacheFile read_cache_file(const std::filesystem::path& path, const UserKey* key);

// What a note of that name says who wrote the file: binds, on their own, or save_cache().
constexpr const char* kWrittenBy = "written by";
constexpr const char* kByBind = "bind";
constexpr const char* kBySaveCache = "save_cache";
// The file of the model, for people.
constexpr const char* kModelNote = "model file";

// Whether binds wrote it on their own.
bool is_automatic(std::span<const char> bytes);

// All files of `folder` whose names are those of caches, sorted.
std::vector<std::filesystem::path> list_folder(const std::filesystem::path& folder);

}  // namespace tessera::cache
