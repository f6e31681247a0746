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
constexpr uint32_t kFormatVersion = 4;

// Larger files are not read.
constexpr int64_t kMostFileBytes = int64_t{1} << 30;

// Whose word a section is. What each may do is decided in cache/origin.h alone.
enum class Origin {
  Here,      // made in this process
  Vouched,   // by this user on this machine: the MAC is by our key
  Stranger,  // from anybody
};

// One thing that was found out: of a library, or of all of them together. Saved and loaded by
// itself.
struct Section {
  std::string type;                     // a backend's name; "plan"
  std::string content;                  // what the bytes are: "costs"
  std::vector<Ingredient> ingredients;  // that it depends on beside the file's: its key
  double seconds = 0;                   // that it took to find out
  int64_t made_ns = 0;                  // when, since 1970
  Origin origin = Origin::Here;
  Mac mac = {};  // as it was read; zeros: encode() makes one where it has a key
  std::string bytes;
  bool operator==(const Section&) const = default;
};

struct CacheFile {
  std::vector<Ingredient> ingredients;
  // What people are told of it, by name: nothing depends on it.
  std::vector<Ingredient> notes;
  std::vector<Section> sections;  // at most one of a type, content and key
  bool operator==(const CacheFile&) const = default;

  Fingerprint fingerprint() const { return fingerprint_of(ingredients); }
  // The newest of its type and content, whatever its key; nullptr where there is none.
  const Section* find(std::string_view type, std::string_view content) const;
  // nullptr where there is none.
  const Section* find(std::string_view type, std::string_view content,
                      std::span<const Ingredient> key) const;
  // Replaces the section of the same type, content and key.
  void put(Section section);
  // "" where there is no such note.
  std::string note(std::string_view name) const;
  void set_note(std::string_view name, std::string value);
};

// Sections that were made here get a MAC where `key` is not null; what others vouch for stays as it
// was read.
std::string encode(const CacheFile& file, const UserKey* key);

// Reads what encode() wrote. Throws Corrupt, naming `place`, for anything else: each byte counts.
// Throws Unsupported for another version of the format. Sections whose MAC is by `key` are vouched
// for, all others, or all where that is null, are strangers'. Allocates no more than the bytes
// hold.
CacheFile decode(std::span<const char> bytes, const UserKey* key, const std::string& place);

// Whether the bytes begin as a cache file's do, damaged or not.
bool is_cache(std::span<const char> bytes);

// Ingredients and notes without the sections, one of which may be damaged: for whoever looks for
// one file among others. Throws as decode() does.
CacheFile decode_head(std::span<const char> bytes, const std::string& place);

}  // namespace tessera::cache
