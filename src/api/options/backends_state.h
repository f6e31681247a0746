// The implementation of the public handle Backends.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/catalog/backend_set.h"
#include "backend/catalog/catalog.h"
#include "ops/registry.h"
#include "store/store.h"
#include "store/stored_blobs.h"
#include "tessera/cache.h"
#include "tessera/tessera.h"

namespace tessera {

struct Backends::State {
  explicit State(const std::filesystem::path& folder)
      : registry(std::make_shared<const ops::Registry>(ops::make_registry())),
        blobs(std::make_shared<StoredBlobs>(user_cache_folder)),
        services(std::make_shared<HostServices>(Log::Callback(), keeper_of(blobs))),
        set(catalog(), absent_backends(), folder, services) {}

  // Warns in `log` if only the reference kernels can be used and the user did not ask for backends
  // by name; once.
  void warn_once_if_slow(const BindOptions& options, const Log& log);

  std::shared_ptr<const ops::Registry> registry;  // without the ops that plug-ins define
  std::shared_ptr<StoredBlobs> blobs;
  std::shared_ptr<HostServices> services;  // with these blobs
  BackendSet set;
  Store store;                            // artifacts of binds with these backends
  std::once_flag has_warned_of_slowness;  // for the warning that only the reference can be used
};

// The plug-in folder of the program or library that contains this code; a trusted folder is
// preferred. "" if there is none.
std::filesystem::path plugin_folder();

// The names in TESSERA_BACKENDS; empty if it is not set.
std::vector<std::string> backends_of_environment();

}  // namespace tessera
