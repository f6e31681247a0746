// The folders of caches, according to the options and the environment.
#pragma once

#include <filesystem>
#include <vector>

#include "tessera/tessera.h"

namespace tessera {

// The default of BindOptions::optimize: true unless TESSERA_OPTIMIZE is 0.
bool is_optimize_wanted_by_environment();

// The folders in the order in which they are searched: the folder of the options, else that of
// TESSERA_CACHE_DIR, else the working folder; then the user's folder, if there is one. Caches are
// written to the first one, or if that is not possible to the next. Throws InvalidArgument if the
// options name something that is not a folder.
std::vector<std::filesystem::path> cache_folders(const BindOptions& options);

// The shares of a run that tuning saved, by model, as the caches of this machine note them.
std::vector<double> known_gains(const BindOptions& options);

}  // namespace tessera
