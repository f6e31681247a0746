// Tries a plug-in before a model does: `tessera verify --backend`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "verify/report.h"

namespace tessera::verification {

struct VerifyOptions {
  uint64_t seed = 1;
  int cases = 1;  // with how many draws of elements each row of the table is tried
};

struct VerifiedBackend {
  std::string name;  // "" where it could not be opened
  std::string version;
  Report report;
};

// Opens the plug-in and tries its layouts, its conversions, what it offers for every row of
// case_table() and for its own ops, with one thread and with two, and the references of its own
// ops. What is wrong is in the report; throws InvalidArgument only where there is no such file.
VerifiedBackend verify_backend(const std::filesystem::path& library, const VerifyOptions& options);

}  // namespace tessera::verification
