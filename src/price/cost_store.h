// Prices that all models of a user share, in one file: tuning a second network measures only what
// is new in it. The file is a cache (src/cache/cache_file.h) whose ingredients are those of the
// machine.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cache/fingerprint.h"
#include "price/cost_sections.h"

namespace tessera::tuning {

// The prices of these libraries in `folder`; empty if the store is missing, damaged, or from
// another machine.
CostTable read_cost_store(const std::filesystem::path& folder,
                          const std::vector<cache::Ingredient>& machine,
                          const std::vector<PricedLibrary>& libraries);

// Adds `costs` and discards entries of another machine or version. If the store would grow too
// large, keeps only `costs`. Returns the reason of a failure, or "".
std::string add_to_cost_store(const std::filesystem::path& folder,
                              const std::vector<cache::Ingredient>& machine,
                              const std::vector<PricedLibrary>& libraries, const CostTable& costs);

}  // namespace tessera::tuning
