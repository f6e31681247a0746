// The request of a bind to the store.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cache/cache_file.h"
#include "cache/fingerprint.h"
#include "price/cost_sections.h"

namespace tessera {

// A file that was passed to load_cache().
struct LoadedCache {
  std::filesystem::path path;
  cache::CacheFile file;
  std::string type;  // the type of the sections to use; "" for all
};

struct PlanRequest {
  std::vector<cache::Ingredient> model;  // the ingredients of the file
  std::string model_name;                // for messages
  tuning::Binding binding;               // the ingredients of the plan
  // Returns the versions of all libraries that the bind may use. Does not open libraries that are
  // remembered.
  std::function<std::vector<tuning::PricedLibrary>()> find_versions;
  // Opens the named libraries; without names, all with which the model is bound.
  tuning::FindLibraries find_libraries;
  std::vector<LoadedCache> given;
  std::vector<std::filesystem::path> folders;  // in the order of the search
  std::filesystem::path key_folder;            // the folder of the user's key; "" for none
  bool is_frozen = false;
  bool looks_up = true;
  // How long the bind may measure; 0: without a limit.
  double budget_seconds = 0;
  // Whether to return untrusted plans too, as proposals that the caller verifies.
  bool takes_proposals = true;
};

}  // namespace tessera
