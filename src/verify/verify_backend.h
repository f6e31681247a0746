// Tries a plug-in before a model does: `tessera verify --backend`.
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
  int cases = 1;  // with how many draws of elements each row of the table is tried
  // What comes before, and what is about these subjects (VerifyStep), is passed over: another
  // process has tried it.
  int first_unit = 0;
  std::set<std::string> passed_over = {};
};

struct VerifiedBackend {
  std::string name;  // "" where it could not be opened
  std::string version;
  Report report;
};

// Told of each step before the plug-in is called. It may take what was found so far out of
// `verified.report`.
using VerifyWatcher = std::function<void(const VerifyStep& step, VerifiedBackend& verified)>;

// Opens the plug-in and tries its layouts, its conversions, what it offers for every row of
// case_table() and for its own ops, with one thread and with two, and the references of its own
// ops; then closes it. What is wrong is in the report; throws InvalidArgument only where there is
// no such file. A plug-in that crashes takes this process with it: src/tune/verify_in_worker.h has
// another one for that.
VerifiedBackend verify_backend(const std::filesystem::path& library, const VerifyOptions& options,
                               const VerifyWatcher& watcher = {});

// Throws InvalidArgument where there is no such file.
void check_is_file(const std::filesystem::path& library);

}  // namespace tessera::verification
