// Verifies a plug-in before a model uses it: `tessera verify --backend`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>

#include "verify/report.h"
#include "verify/verify_steps.h"

namespace tessera::verification {

struct VerifyOptions {
  uint64_t seed = 1;
  int cases = 1;  // number of random draws per row of the table
  // Skips earlier units and the units of these subjects (VerifyStep), because another process has
  // tested them.
  int first_unit = 0;
  std::set<std::string> passed_over = {};
};

struct VerifiedBackend {
  std::string name;  // "" if it could not be opened
  std::string version;
  Report report;
};

// Called with each step before the plug-in is called. It may take intermediate results out of
// `verified.report`.
using VerifyWatcher = std::function<void(const VerifyStep& step, VerifiedBackend& verified)>;

// Opens the plug-in, tests it with one thread and with two, and closes it. Tests its layouts, its
// conversions, its candidates for every row of case_table() and for its own ops, and the references
// of its own ops. Errors are in the report; throws InvalidArgument only if there is no such file. A
// plug-in that crashes ends this process too: src/microbench/verify_in_worker.h uses another
// process.
VerifiedBackend verify_backend(const std::filesystem::path& library, const VerifyOptions& options,
                               const VerifyWatcher& watcher = {});

// Throws InvalidArgument if there is no such file.
void check_is_file(const std::filesystem::path& library);

}  // namespace tessera::verification
