// Opens a canonical path safely although others may write to its folders.
#pragma once

#include <filesystem>

#include "base/file_handle.h"

namespace tessera {

// Opens `path`, which is absolute and canonical, for reading, without following symbolic links in
// any component: a link created since the path was made canonical fails with ELOOP or ENOTDIR. So a
// path inside a folder opens a file inside that folder. The result is not open on failure; errno
// says why. Does not block on pipes.
FileHandle open_without_links(const std::filesystem::path& path);

}  // namespace tessera
