// Counts what a folder of caches keeps, by kind; for people.
#pragma once

#include <filesystem>
#include <functional>

#include "tessera/cache.h"

namespace tessera {

// Whether the cache file, of a model or of shared prices, is intact.
using IsIntact = std::function<bool(const std::filesystem::path& file)>;

// See describe_cache_folder(). `key_folder` has the user's key.
CacheFolderDescription count_stored(const std::filesystem::path& folder,
                                    const std::filesystem::path& key_folder,
                                    const IsIntact& is_intact);

}  // namespace tessera
