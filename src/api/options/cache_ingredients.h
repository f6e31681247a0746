// The ingredients on which the results of binding a model depend.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/options/option_table.h"
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

// The ingredients that every measurement on this machine has.
std::vector<cache::Ingredient> machine_ingredients();

// How the machine for which plans were made differs from this one; "" if it does not. `ingredients`
// are those of a model.
std::string explain_other_machine(const std::vector<cache::Ingredient>& ingredients);

// The ingredients that every bind of a model on this machine has. They decide whether a file can be
// used before shapes are known. `structure` is of the graph that was loaded.
std::vector<cache::Ingredient> model_ingredients(const ModelStructure& structure);

// The ingredients that differ from bind to bind. `backends` are those that the user named.
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

// Adds the revision of the core to the versions of `libraries`, because it affects their prices.
void add_core_revision(std::vector<tuning::PricedLibrary>& libraries);

}  // namespace tessera
