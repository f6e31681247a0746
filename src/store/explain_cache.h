// What people are told of caches: why nothing was found, and who found out what was.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cache/cache_file.h"
#include "price/cost_sections.h"
#include "tessera/cache.h"

namespace tessera {

// "cache 'x.cache'".
std::string cache_location(const std::filesystem::path& path);

// Why no file of the folders fits: what differs, where one is of the same model.
std::string explain_miss(const std::vector<std::filesystem::path>& folders,
                         const std::vector<cache::Ingredient>& model,
                         const tuning::Binding& binding);

// The same of a file of the model, of which `taken` has no plan.
std::string explain_no_plan(const tuning::TakenPlan& taken, const std::string& place);

// Of measuring that the user stopped.
std::string explain_interrupted(double seconds, bool is_frozen);

// By library what was loaded (`known`), and what `costs`, if it is not null, has besides.
std::vector<CacheTypeReport> describe_types(const std::vector<tuning::PricedLibrary>& libraries,
                                            const tuning::TakenCosts& known,
                                            const tuning::CostTable* costs);

// For people, with digests.
std::vector<CacheIngredient> describe(const std::vector<cache::Ingredient>& ingredients);

}  // namespace tessera
