// Whether a file can be written, found out before there is anything to write: whoever measured for
// a minute should not learn only then that a folder is missing.
#pragma once

#include <filesystem>
#include <string>

namespace tessera {

// Why no file can get the name `file`, as a sentence for the user: "the folder 'out' does not
// exist; create it first". "" where nothing speaks against it. Writes nothing, so a full disk is
// not seen. Devices and pipes are files here.
std::string explain_unwritable_file(const std::filesystem::path& file);

// The same of files in `folder`, which may be missing with the folders above it: whoever writes
// makes them.
std::string explain_unwritable_folder(const std::filesystem::path& folder);

}  // namespace tessera
