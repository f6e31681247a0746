// Finds the file of a fingerprint in a folder. Files are named by the last 7 digits of the
// fingerprint, or by more digits if several fingerprints end alike.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/cache_file.h"

namespace tessera::cache {

// The extension of files of packs (pack_file.h).
constexpr const char* kPacksEnding = ".packs";

// "89abcde.cache" for 7 digits.
std::string file_name(const Fingerprint& fingerprint, size_t digits);

struct FoundCache {
  std::optional<CacheFile> file;
  // The whole contents, if there is a file: to decode() skipped sections later.
  std::shared_ptr<const std::string> bytes;
  std::filesystem::path path;  // of the file that was found or could not be used
  std::string reason;          // why no usable file was found
};

// Finds the file of `folder` with these ingredients. Files that are damaged, foreign, or writable
// by others count as missing, with a reason. For `is_wanted` see decode().
FoundCache find_in_folder(const std::filesystem::path& folder,
                          std::span<const Ingredient> ingredients, const UserKey* key,
                          const IsWanted& is_wanted = nullptr);

// Removes the oldest sections beyond a maximum number per type and content: plans, by shapes and
// options; prices, by library version.
void drop_oldest(CacheFile& file);

struct SavedCache {
  std::filesystem::path path;
  std::string reason;  // why it was not saved, or ""
};

// Merges the sections of `file` into the file of the same fingerprint in `folder`, or creates it.
// Keeps other sections, except the oldest beyond the maximum number. Replaces a damaged file of
// that name. `merge` combines a new section with one that exists already; null: the new one wins.
using MergeSections = std::function<Section(const Section& present, Section added)>;
SavedCache save_in_folder(const std::filesystem::path& folder, const CacheFile& file,
                          const UserKey* key, const MergeSections& merge = nullptr);

// Merges the sections into the file `path` if it has the same fingerprint; otherwise replaces the
// file. Returns the reason of a failure, or "".
std::string save_in_file(const std::filesystem::path& path, const CacheFile& file,
                         const UserKey* key, const MergeSections& merge = nullptr);

// Reads the file `path`, which the user has named. Throws InvalidArgument if it is missing or must
// not be read, Corrupt and Unsupported as decode() does.
CacheFile read_cache_file(const std::filesystem::path& path, const UserKey* key);

// The name of the note that says who wrote the file: an automatic save of a bind, or save_cache().
constexpr const char* kWrittenBy = "written by";
constexpr const char* kByBind = "bind";
constexpr const char* kBySaveCache = "save_cache";
// The name of the note with the file of the model, for people.
constexpr const char* kModelNote = "model file";

// The name of the note with the share of a run that the newest tuning saved: "0.174".
constexpr const char* kGainNote = "gain of tuning";

// The gains that files of `folder` note whose ingredients begin with `machine`. Reads 100 files at
// most, because they are read whole; their names are digests, so these are a random sample.
std::vector<double> read_gains(const std::filesystem::path& folder,
                               std::span<const Ingredient> machine);

// Whether automatic saves of binds wrote it.
bool is_automatic(std::span<const char> bytes);

// All files of `folder` with the name of a cache file, sorted.
std::vector<std::filesystem::path> list_folder(const std::filesystem::path& folder);

}  // namespace tessera::cache
