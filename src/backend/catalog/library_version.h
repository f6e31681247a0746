// The version of a library, and the remembered data of plug-ins, which make it known without
// opening them.
#pragma once

#include <string>
#include <vector>

#include "base/files/file_stamp.h"

namespace tessera {

class Plugin;

struct LibraryIngredient {
  std::string name;   // "version"
  std::string value;  // "3.2.1"
  bool operator==(const LibraryIngredient&) const = default;
};

struct LibraryVersion {
  std::string backend;
  std::vector<LibraryIngredient> ingredients;
  bool operator==(const LibraryVersion&) const = default;
};

LibraryVersion version_of(const Plugin& plugin);

// A plug-in of the catalog that was usable when its files had these stamps. While the stamps are
// unchanged, it is still usable and has this version.
struct RememberedPlugin {
  FileStamp stamp;                     // of the plug-in
  std::vector<StampedFile> libraries;  // that were loaded with it
  LibraryVersion version;
  bool operator==(const RememberedPlugin&) const = default;
};

}  // namespace tessera
