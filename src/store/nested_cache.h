// Caches of nested graphs inside the file of the model that contains them: each is a section with a
// whole cache file (docs/formats/cache.md). Files of save_cache() and bundles have them; in the
// folders of users, nested graphs have files of their own.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "cache/cache_file.h"
#include "cache/user_key.h"
#include "store/cache_record.h"

namespace tessera {

bool is_nested_cache(const cache::Section& section);

// The cache file of a record, without notes, with the sections of type `wanted` ("": of all types).
cache::CacheFile cache_file_of(const CacheRecord& record, const std::string& wanted);

// Adds what was found out about nested graphs to the file of their model: sections of type `wanted`
// ("": of all types). `key` as for cache::encode().
void add_nested_caches(const CacheRecords& nested, const std::string& wanted,
                       const cache::UserKey* key, cache::CacheFile& file);

// The cache file in `outer` that has these ingredients; nullopt if there is none. Throws Corrupt,
// naming `location`, and Unsupported, as cache::decode() does.
std::optional<cache::CacheFile> find_nested_cache(const cache::CacheFile& outer,
                                                  std::span<const cache::Ingredient> ingredients,
                                                  const cache::UserKey* key,
                                                  const std::string& location);

// Throws Corrupt, naming `location`, if one of them is no sound cache file.
void check_nested_caches(const cache::CacheFile& outer, const std::string& location);

}  // namespace tessera
