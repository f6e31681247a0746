// What the results of binding a model depend on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/plugin.h"
#include "cache/fingerprint.h"
#include "graph/graph.h"
#include "tessera/tessera.h"
#include "tune/group_text.h"

namespace tessera {

// Those that every measurement on this machine has.
std::vector<cache::Ingredient> machine_ingredients();

// Those that every bind of a model on this machine has: what a file can be judged by before shapes
// are known. `structure` is of the graph that was loaded.
std::vector<cache::Ingredient> model_ingredients(const tuning::StructureText& structure);

// These, and what depends on how it is bound. `plugins` are those that are asked, on `threads`.
std::vector<cache::Ingredient> bind_ingredients(
    const Graph& loaded, const tuning::StructureText& structure, const BindOptions& options,
    const std::vector<std::shared_ptr<const Plugin>>& plugins, int threads);

// For people, with digests.
std::vector<CacheIngredient> describe(const std::vector<cache::Ingredient>& ingredients);

}  // namespace tessera
