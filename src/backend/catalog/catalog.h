// The backends known at build time: backends/catalog.json as a table. catalog.cc is generated.
#pragma once

#include <span>
#include <string_view>

#include "tessera/backend_abi.h"

namespace tessera {

struct CatalogEntry {
  // Why this build does not include it.
  enum Fault { kNone, kNotConfigured, kLibraryMissing };

  std::string_view name;
  std::span<const std::string_view> aliases;
  std::string_view file;     // of its plug-in, in the plug-in folder; "" if linked in
  std::string_view install;  // the command that installs the library
  std::string_view reason;   // why this build does not include it, as a sentence; "" if it does
  Fault fault = kNone;
  tessera_open_backend_function open = nullptr;  // if linked in
  // Used only if the user names it, because opening it costs time and memory in every process.
  bool is_only_if_named = false;
};

// A known backend that this version does not include.
struct AbsentBackend {
  std::string_view name;
  std::span<const std::string_view> aliases;
  std::string_view reason;  // what is missing, as a sentence
};

std::span<const AbsentBackend> absent_backends();

// Best first; the last one is the reference.
std::span<const CatalogEntry> catalog();

}  // namespace tessera
