// The bytes of a cache file and what they mean; docs/formats/cache.md has every one of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/fingerprint.h"
#include "cache/user_key.h"

namespace tessera::cache {

// Raised when the format changes, so that files of another one are told apart.
constexpr uint32_t kFormatVersion = 3;

// Larger files are not read.
constexpr int64_t kMostFileBytes = int64_t{1} << 30;

// What was found for one library, or for the whole plan. Saved and loaded by itself.
struct Section {
  std::string type;                     // a backend's name; "plan"
  std::string content;                  // what the bytes are: "costs"
  std::vector<Ingredient> ingredients;  // that this section depends on beside the file's
  double seconds = 0;                   // that it took to find out
  bool is_authenticated = false;        // machine code: only a MAC makes it usable
  bool is_trusted = true;               // not, where it should have a MAC by our key and has none
  Mac mac = {};                         // as it was read; zeros: encode() makes one where needed
  std::string bytes;
  bool operator==(const Section&) const = default;
};

struct CacheFile {
  std::vector<Ingredient> ingredients;
  std::vector<Section> sections;  // at most one of a type and content
  bool operator==(const CacheFile&) const = default;

  Fingerprint fingerprint() const { return fingerprint_of(ingredients); }
  // nullptr where there is none.
  const Section* find(std::string_view type, std::string_view content) const;
  // Replaces the section of the same type and content.
  void put(Section section);
};

// Authenticated sections without a MAC need a key.
std::string encode(const CacheFile& file, const UserKey* key);

// Reads what encode() wrote. Throws Corrupt, naming `place`, for anything else: each byte counts.
// Throws Unsupported for another version of the format. Authenticated sections whose MAC is not by
// `key`, or all of them where that is null, are there and not trusted. Allocates no more than the
// bytes hold.
CacheFile decode(std::span<const char> bytes, const UserKey* key, const std::string& place);

// Whether the bytes begin as a cache file's do, damaged or not.
bool is_cache(std::span<const char> bytes);

// The ingredients alone, also where a section is damaged: for whoever looks for one file among
// others. Throws as decode() does.
std::vector<Ingredient> decode_ingredients(std::span<const char> bytes, const std::string& place);

}  // namespace tessera::cache
