// Where caches are looked for and kept: what the options and the environment say.
#pragma once

#include <filesystem>
#include <vector>

#include "tessera/tessera.h"

namespace tessera {

// Whether binds that do not say so measure: unless TESSERA_OPTIMIZE is 0.
bool is_optimize_wanted_by_environment();

// In the order in which they are looked into and, for want of the first, written to: that of the
// options, of TESSERA_CACHE_DIR or the working folder, then the user's where there is one. Throws
// InvalidArgument where the options name something that is no folder.
std::vector<std::filesystem::path> cache_folders(const BindOptions& options);

}  // namespace tessera
