// What bind() found out, kept in files: tessera/tessera.h saves and loads them, this says what is
// in them. docs/formats/cache.md has every byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tessera {

// One thing that what was found out depends on: "threads", "2". The value of something long is a
// digest of it.
struct CacheIngredient {
  std::string name;
  std::string value;
  std::string digest;  // 40 hexadecimal digits
};

// What a bind had from caches and what it found out itself, of one library or of the plan.
struct CacheTypeReport {
  std::string type;          // a backend's name, or "plan"
  int64_t loaded = 0;        // prices, or plans
  int64_t measured = 0;      // the same
  double seconds_saved = 0;  // that it took to find out what was loaded
  // Who found out what was loaded: "found here", in this process; "found by this user"; "found by
  // somebody else", where each kernel is judged before its results count. "": nothing was loaded.
  std::string origin;
};

struct CacheReport {
  std::string fingerprint;  // 40 hexadecimal digits; "" where bind() did not optimise
  std::vector<CacheIngredient> ingredients;  // of it
  // Of the plan, one of many in the file: shapes, options, threads, and the libraries there are.
  std::vector<CacheIngredient> entry_ingredients;
  bool is_hit = false;         // the plan was known, and nothing was measured
  std::filesystem::path file;  // that was loaded; "": none
  // Where the plan that was loaded was found with other libraries than there are now: which. It
  // runs until what these offer was measured, behind the runs, and something faster was found.
  std::string change;
  std::string reason;           // why it is no hit
  std::filesystem::path saved;  // where what was found out went; "": nowhere
  std::string not_saved;        // why not
  std::vector<CacheTypeReport> types;
};

struct CacheSection {
  std::string type;
  std::string content;
  std::vector<CacheIngredient> ingredients;  // of its own
  std::string origin;                        // as CacheTypeReport has it
  double seconds = 0;                        // that it took to find out
  int64_t bytes = 0;
  int64_t made_ns = 0;  // when, since 1970
};

struct CacheFileDescription {
  std::filesystem::path file;
  std::string fingerprint;
  std::string model;       // the file name of the model that was bound last
  std::string written_by;  // "bind", on its own, or "save_cache"
  std::vector<CacheIngredient> ingredients;
  std::vector<CacheSection> sections;
  int64_t bytes = 0;
  int64_t used_ns = 0;  // the last time, since 1970
};

// What a cache file holds, verified. Throws InvalidArgument where there is none that may be read
// (it says which rule), Corrupt where it is damaged, Unsupported for another version of the format.
CacheFileDescription describe_cache(const std::filesystem::path& file);

// The cache files of a folder, whatever is in them, sorted by name; none where there is no such
// folder.
std::vector<std::filesystem::path> list_caches(const std::filesystem::path& folder);

struct PrunedCaches {
  int64_t files = 0;
  int64_t bytes = 0;
};

// Removes from a user's folder what was not used for longest, until caches, packs, kernels and
// indices together take `max_bytes` at most; never what a process is using. bind() does so for
// 8 GiB, 10,000 files and a year whenever it keeps something there, and in working folders for
// 1 GiB, 256 files and 180 days of the caches that it wrote on its own.
PrunedCaches prune_caches(const std::filesystem::path& folder,
                          int64_t max_bytes = int64_t{8} << 30);

// Writes all caches of `folder`, and the prices that all models share, into one file: what another
// folder, user or machine can import. Packs and indices are made anew there. Gives how many caches
// it has. Throws DeviceFailed where it cannot be written.
int64_t export_caches(const std::filesystem::path& folder, const std::filesystem::path& file);

// Puts what export_caches() wrote into `folder`, beside what is there: each section that is in both
// is taken from the file. Gives how many caches it took. Throws InvalidArgument, Corrupt and
// Unsupported as describe_cache() does, before anything is changed; DeviceFailed where a cache
// cannot be written.
int64_t import_caches(const std::filesystem::path& file, const std::filesystem::path& folder);

// Where a user's caches are: XDG_CACHE_HOME/tessera, or .cache/tessera of HOME; "" where neither is
// set.
std::filesystem::path user_cache_folder();

}  // namespace tessera
