// The request of a bind to the store.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
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

// The caches of the bundle that a model comes from.
struct BundledCache {
  std::string name;                          // "bundle 'a.bundle'"
  std::filesystem::path path;                // of the bundle
  cache::CacheFile plans;                    // and caches of nested graphs; no other sections
  std::shared_ptr<const std::string> bytes;  // of the whole cache file
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
  // May be null. The folders precede it, so that what a later search found is used.
  std::shared_ptr<const BundledCache> bundled = {};
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
