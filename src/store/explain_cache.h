// Describes caches to users: why nothing was found, who found the results, and how much is kept.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cache/cache_file.h"
#include "price/cost_sections.h"
#include "tessera/cache.h"

namespace tessera {

// "cache 'x.cache'".
std::string cache_location(const std::filesystem::path& path);

// Why no file of the folders fits. If there are files of the same model, says how the most similar
// one differs.
std::string explain_miss(const std::vector<std::filesystem::path>& folders,
                         const std::vector<cache::Ingredient>& model,
                         const tuning::Binding& binding);

// Why one file of the model has no plan for `binding`.
std::string explain_no_plan(const cache::CacheFile& file, const tuning::Binding& binding,
                            const std::string& location);

// Describes measuring that the user interrupted.
std::string explain_interrupted(double seconds, bool is_frozen);

// Reports by library the loaded results (`known`) and, if `costs` is not nullptr, the additional
// results in `costs`.
std::vector<CacheTypeReport> describe_types(const std::vector<tuning::PricedLibrary>& libraries,
                                            const tuning::TakenCosts& known,
                                            const tuning::CostTable* costs);

// For reports to users, with digests.
std::vector<CacheIngredient> describe(const std::vector<cache::Ingredient>& ingredients);

// Whether the cache file, of a model or of shared prices, is intact.
using IsIntact = std::function<bool(const std::filesystem::path& file)>;

// Counts what a folder of caches keeps, by kind. See describe_cache_folder(). `key_folder` has the
// user's key.
CacheFolderDescription count_stored(const std::filesystem::path& folder,
                                    const std::filesystem::path& key_folder,
                                    const IsIntact& is_intact);

}  // namespace tessera
