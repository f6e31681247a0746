// Prices that all models of a user share, in one file: tuning a second network measures what is new
// in it alone. The file is a cache (src/cache/cache_file.h) whose ingredients are those of the
// machine.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cache/fingerprint.h"
#include "tune/cost_sections.h"

namespace tessera::tuning {

// What the store in `folder` has for these libraries; nothing where it is missing, damaged, or of
// another machine.
CostTable read_cost_store(const std::filesystem::path& folder,
                          const std::vector<cache::Ingredient>& machine,
                          const std::vector<PricedLibrary>& libraries);

// Adds `costs` to it; what it had of another machine or version goes. One that grows too large
// begins anew. Gives why it could not be written, or "".
std::string add_to_cost_store(const std::filesystem::path& folder,
                              const std::vector<cache::Ingredient>& machine,
                              const std::vector<PricedLibrary>& libraries, const CostTable& costs);

}  // namespace tessera::tuning
