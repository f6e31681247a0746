// What the build knows of backends: backends/catalog.json as a table. catalog.cc is generated.
#pragma once

#include <span>
#include <string_view>

#include "tessera/backend_abi.h"

namespace tessera {

struct CatalogEntry {
  // Why this build does not have it.
  enum Fault { kNone, kNotConfigured, kLibraryMissing };

  std::string_view name;
  std::span<const std::string_view> aliases;
  std::string_view file;     // of its plug-in, in the folder of plug-ins; "" for a linked one
  std::string_view install;  // what to install to get the library
  std::string_view reason;   // why this build does not have it, in a sentence; "" if it does
  Fault fault = kNone;
  tessera_open_backend_function open = nullptr;  // of a linked one
};

// One that people know and this version does not have.
struct AbsentBackend {
  std::string_view name;
  std::span<const std::string_view> aliases;
  std::string_view reason;  // what is missing, in a sentence
};

std::span<const AbsentBackend> absent_backends();

// Best first; the one that is last is the reference.
std::span<const CatalogEntry> catalog();

}  // namespace tessera
