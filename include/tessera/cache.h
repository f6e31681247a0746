// Descriptions of cache files, in which bind() keeps what it measured and chose. tessera/tessera.h
// saves and loads them. docs/formats/cache.md specifies every byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tessera {

// One thing that the contents of a cache depend on, for example "threads", "2". A long value is
// replaced by its digest.
struct CacheIngredient {
  std::string name;
  std::string value;
  std::string digest;  // 40 hexadecimal digits
};

// The results that a bind loaded from caches or measured itself, for one library or for the plan.
struct CacheTypeReport {
  std::string type;          // a backend's name, or "plan"
  int64_t loaded = 0;        // prices, or plans
  int64_t measured = 0;      // prices, or plans
  double seconds_saved = 0;  // time that it once took to find the loaded results
  // The origin of the loaded results. "found here": this process; "found by this user"; "found by
  // somebody else": each kernel is compared with the reference before its results are used; "":
  // nothing was loaded.
  std::string origin;
};

struct CacheReport {
  std::string fingerprint;                   // 40 hexadecimal digits; "" without optimize
  std::vector<CacheIngredient> ingredients;  // of the fingerprint
  // Of the plan, which is one of many in the file: shapes, options, threads, and the available
  // libraries.
  std::vector<CacheIngredient> entry_ingredients;
  bool is_hit = false;         // the plan was known, and nothing was measured
  std::filesystem::path file;  // the file that was loaded; "": none
  // If the loaded plan was found with other libraries than those available now: which ones differ.
  // The plan runs until the candidates of these libraries have been measured in the background and
  // a faster plan was found.
  std::string change;
  std::string reason;           // why it is not a hit
  std::filesystem::path saved;  // the file that was written; "": none
  std::string not_saved;        // why nothing was written
  std::vector<CacheTypeReport> types;
};

struct CacheSection {
  std::string type;
  std::string content;
  std::vector<CacheIngredient> ingredients;  // in addition to those of the file
  std::string origin;                        // see CacheTypeReport::origin
  double seconds = 0;                        // time that it took to find out the contents
  int64_t bytes = 0;
  int64_t made_ns = 0;  // time of creation, since 1970
};

struct CacheFileDescription {
  std::filesystem::path file;
  std::string fingerprint;
  std::string model;       // the file name of the model that was bound last
  std::string written_by;  // "bind" (automatically) or "save_cache"
  std::vector<CacheIngredient> ingredients;
  std::vector<CacheSection> sections;
  int64_t bytes = 0;
  int64_t used_ns = 0;  // time of the last use, since 1970
};

// Verifies a cache file and describes its contents. Throws InvalidArgument if there is no such file
// or it may not be read (saying which rule forbids it), Corrupt if it is damaged, Unsupported for
// another version of the format.
CacheFileDescription describe_cache(const std::filesystem::path& file);

// The cache files of a folder, sorted by name, valid or not; none if there is no such folder.
std::vector<std::filesystem::path> list_caches(const std::filesystem::path& folder);

// The files of one kind in a folder.
struct CacheKindDescription {
  // "caches" (plans and prices of a model), "prices" (of all models), "models" (read and
  // rewritten), "packs" (packed weights), "kernels" (saved as a whole) or "blobs" (what plug-ins
  // keep, such as compiled programs).
  std::string kind;
  std::string backend;  // of kernels and blobs; "" if the file cannot be used
  int64_t files = 0;
  int64_t bytes = 0;
  // The number of unusable files, which are damaged, were made on another processor, or are not
  // authenticated by this user's key. Packs are checked only by their head, models not at all.
  int64_t unusable = 0;
  int64_t oldest_use_ns = 0;  // since 1970
  int64_t newest_use_ns = 0;
};

struct CacheFolderDescription {
  std::filesystem::path folder;
  // The limits of what bind() writes there, beyond which it removes the least recently used files.
  int64_t max_files = 0;
  int64_t max_bytes = 0;
  std::vector<CacheKindDescription> kinds;  // those that the folder has
};

// Counts the files of a folder, which is the user's if it has a key, and checks them. There are no
// kinds if there is no such folder.
CacheFolderDescription describe_cache_folder(const std::filesystem::path& folder);

struct PrunedCaches {
  int64_t files = 0;
  int64_t bytes = 0;
};

// Removes the least recently used files from a user's folder until caches, packs, kernels and
// indices together have at most `max_bytes`; never a file that a process is using. bind() also does
// this whenever it writes to the folder, with limits of 8 GiB, 10,000 files and a year; and in
// working folders, for the caches that it wrote automatically, with limits of 1 GiB, 256 files and
// 180 days.
PrunedCaches prune_caches(const std::filesystem::path& folder,
                          int64_t max_bytes = int64_t{8} << 30);

// Writes all caches of `folder`, and the prices that all models share, into one file, which another
// folder, user or machine can import. It contains no packs and indices; the importing side creates
// them again. Returns how many caches it has. Throws DeviceFailed if the file cannot be written.
int64_t export_caches(const std::filesystem::path& folder, const std::filesystem::path& file);

// Imports the caches of a file that export_caches() wrote into `folder`, and keeps the caches that
// are already there. If both have a section of a cache, the section in the file replaces the other
// one; shared prices are imported only into a folder that has none. Returns the number of imported
// caches. Throws InvalidArgument, Corrupt and Unsupported as describe_cache() does, before anything
// is changed; DeviceFailed if a cache cannot be written.
int64_t import_caches(const std::filesystem::path& file, const std::filesystem::path& folder);

// The folder of the user's caches: XDG_CACHE_HOME/tessera, or .cache/tessera of HOME; "" if neither
// variable is set.
std::filesystem::path user_cache_folder();

}  // namespace tessera
