// What the results of binding a model depend on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/option_table.h"
#include "backend/plugin.h"
#include "cache/fingerprint.h"
#include "graph/graph.h"
#include "price/cost_sections.h"
#include "store/model_index.h"
#include "tessera/tessera.h"

namespace tessera {

// 16 hex digits that change with every source of the core that decides what is computed or what a
// measured time means, and with how it was compiled. The build generates it
// (cmake/TesseraKernelRevision.cmake); plug-ins have ingredients of their own.
const char* kernel_revision();

// Those that every measurement on this machine has.
std::vector<cache::Ingredient> machine_ingredients();

// Those that every bind of a model on this machine has: what a file can be judged by before shapes
// are known. `structure` is of the graph that was loaded.
std::vector<cache::Ingredient> model_ingredients(const ModelStructure& structure);

// What depends on how it is bound. `backends` are those that were asked for by name, on `threads`.
std::vector<cache::Ingredient> bind_ingredients(const Graph& loaded,
                                                const ModelStructure& structure,
                                                const BindOptions& options,
                                                const std::vector<std::string>& backends,
                                                int threads);

// Values of ingredients that need more than the field of their option (OptionIngredient::write).
// The types of the inputs in their order, as they are bound.
std::string inputs_text(const IngredientSource& source);
// Names of values in the structure, because a plan does not depend on names of the model.
std::string fetch_text(const IngredientSource& source);
std::string threads_text(const IngredientSource& source);
std::string backends_text(const IngredientSource& source);
std::string denormals_text(const IngredientSource& source);
// "cpu" if nothing is chosen, as before there were other devices; "cpu only" if that is chosen.
std::string devices_text(const IngredientSource& source);
// "start" and "1-runs" are one thing.
std::string optimize_for_text(const IngredientSource& source);

// Has the versions of these libraries depend on that of the code around them.
void add_core_revision(std::vector<tuning::PricedLibrary>& libraries);

}  // namespace tessera
