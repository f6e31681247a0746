// What a bind asks the store.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cache/cache_file.h"
#include "cache/fingerprint.h"
#include "price/cost_sections.h"

namespace tessera {

// A file that load_cache() was called with.
struct LoadedCache {
  std::filesystem::path path;
  cache::CacheFile file;
  std::string type;  // of sections; "" for all
};

struct PlanRequest {
  std::vector<cache::Ingredient> model;  // of the file
  std::string model_name;                // for people
  tuning::Binding binding;               // of the plan
  // Of all that the bind may use; opens none that is remembered.
  std::function<std::vector<tuning::PricedLibrary>()> find_versions;
  // Opens what it is asked for; no names: all that the model is bound with.
  tuning::FindLibraries find_libraries;
  std::vector<LoadedCache> given;
  std::vector<std::filesystem::path> folders;  // in the order in which they are looked into
  std::filesystem::path key_folder;            // the user's; "" for none
  bool is_frozen = false;
  bool looks_up = true;
  // Plans of third_party_plugins are found too, as proposals that the caller judges.
  bool takes_proposals = true;
};

}  // namespace tessera
