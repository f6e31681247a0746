// Checks whether a file can be written before there is anything to write: a user who measured for a
// minute should not learn only then that a folder is missing.
#pragma once

#include <filesystem>
#include <string>

namespace tessera {

// Why no file `file` can be created, as a sentence for the user: "the folder 'out' does not exist;
// create it first". "" if nothing prevents it. Writes nothing, so it does not notice a full disk.
// Devices and pipes count as files.
std::string explain_unwritable_file(const std::filesystem::path& file);

// Same as explain_unwritable_file(), for files in `folder`. The folder and those above it may be
// missing, because the writer creates them.
std::string explain_unwritable_folder(const std::filesystem::path& folder);

}  // namespace tessera
