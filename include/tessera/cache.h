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
};

struct CacheReport {
  std::string fingerprint;  // 40 hexadecimal digits; "" where bind() did not optimise
  std::vector<CacheIngredient> ingredients;  // of it
  bool is_hit = false;                       // the plan was known, and nothing was measured
  std::filesystem::path file;                // that was loaded; "": none
  std::string reason;                        // why it is no hit
  std::filesystem::path saved;               // where what was found out went; "": nowhere
  std::string not_saved;                     // why not
  std::vector<CacheTypeReport> types;
};

struct CacheSection {
  std::string type;
  std::string content;
  std::vector<CacheIngredient> ingredients;  // of its own
  double seconds = 0;                        // that it took to find out
  int64_t bytes = 0;
};

struct CacheFileDescription {
  std::filesystem::path file;
  std::string fingerprint;
  std::vector<CacheIngredient> ingredients;
  std::vector<CacheSection> sections;
  int64_t bytes = 0;
};

// What a cache file holds, verified. Throws InvalidArgument where there is none that may be read
// (it says which rule), Corrupt where it is damaged, Unsupported for another version of the format.
CacheFileDescription describe_cache(const std::filesystem::path& file);

// The cache files of a folder, whatever is in them, sorted by name; none where there is no such
// folder.
std::vector<std::filesystem::path> list_caches(const std::filesystem::path& folder);

// Where a user's caches are: XDG_CACHE_HOME/tessera, or .cache/tessera of HOME; "" where neither is
// set.
std::filesystem::path user_cache_folder();

}  // namespace tessera
