// Opening the very file that a path was found to lead to, though others may write to its folders.
#pragma once

#include <filesystem>

#include "base/file_handle.h"

namespace tessera {

// Opens `path`, which is absolute and canonical, for reading. No link is followed, in none of its
// folders either: a link that was put there since the path was made canonical fails with ELOOP or
// ENOTDIR. So a path that was inside a folder is a file inside that folder. Not open where it
// fails; errno says why. Does not wait for the writer of a pipe.
FileHandle open_without_links(const std::filesystem::path& path);

}  // namespace tessera
