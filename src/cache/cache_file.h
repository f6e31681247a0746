// The byte format of cache files; docs/formats/cache.md documents every byte.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/fingerprint.h"
#include "cache/user_key.h"

namespace tessera::cache {

// Incremented when the format changes, so that other versions are recognised.
constexpr uint32_t kFormatVersion = 4;

// Larger files are not read.
constexpr int64_t kMaxFileBytes = int64_t{1} << 30;

// The origin of a section. cache/origin.h alone decides what each origin may do.
enum class Origin {
  Local,      // made in this process
  Signed,     // written by this user on this machine: the MAC is by our key
  Untrusted,  // from anybody
};

// One stored result, of one library or of all together. Saved and loaded independently.
struct Section {
  std::string type;     // a backend's name or "plan"
  std::string content;  // what the bytes contain: "costs"
  std::vector<Ingredient>
      ingredients;      // the key: what it depends on in addition to the file's ingredients
  double seconds = 0;   // time spent to compute it
  int64_t made_ns = 0;  // time of creation, since 1970
  Origin origin = Origin::Local;
  Mac mac = {};  // as read; zeros: encode() computes it if it has a key
  std::string bytes;
  bool operator==(const Section&) const = default;
};

struct CacheFile {
  std::vector<Ingredient> ingredients;
  // Information for people and forecasts, by name; no result depends on it.
  std::vector<Ingredient> notes;
  std::vector<Section> sections;  // at most one per type, content and key
  bool operator==(const CacheFile&) const = default;

  Fingerprint fingerprint() const { return fingerprint_of(ingredients); }
  // The newest section of this type and content, with any key; nullptr if there is none.
  const Section* find(std::string_view type, std::string_view content) const;
  // nullptr if there is none.
  const Section* find(std::string_view type, std::string_view content,
                      std::span<const Ingredient> key) const;
  // Replaces the section with the same type, content and key.
  void put(Section section);
  // "" if there is no such note.
  std::string note(std::string_view name) const;
  void set_note(std::string_view name, std::string value);
};

// If `key` is not null, sections that were made in this process get a MAC; other sections keep the
// MAC that they have.
std::string encode(const CacheFile& file, const UserKey* key);

// Reads what encode() wrote. Throws Corrupt, naming `location`, for anything else: every byte is
// checked. Throws Unsupported for another version of the format. Sections whose MAC is by `key` are
// Signed; all others are Untrusted, and all if `key` is null. Allocates no more than the size of
// the bytes. Skips sections for which `is_wanted` returns false, after checking their checksum, so
// they cost nothing more. `is_wanted` gets the section without origin and bytes; null: all are
// wanted.
using IsWanted = std::function<bool(const Section& section)>;
CacheFile decode(std::span<const char> bytes, const UserKey* key, const std::string& location,
                 const IsWanted& is_wanted = nullptr);

// Whether the bytes begin like a cache file, valid or not.
bool is_cache(std::span<const char> bytes);

// Ingredients and notes without the sections, one of which may be damaged: for a search through
// many files. Throws as decode() does.
CacheFile decode_head(std::span<const char> bytes, const std::string& location);

}  // namespace tessera::cache
