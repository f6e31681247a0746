// Where caches are looked for and kept: what the options and the environment say.
#pragma once

#include <filesystem>
#include <vector>

#include "tessera/tessera.h"

namespace tessera {

// In the order in which they are looked into and, for want of the first, written to: that of the
// options, of TESSERA_CACHE_DIR or the working folder, then the user's where there is one.
std::vector<std::filesystem::path> cache_folders(const BindOptions& options);

}  // namespace tessera
