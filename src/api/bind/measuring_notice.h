// The notice before a process measures for the first time. bind_progress.h reports the progress of
// measuring.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/errors/log.h"
#include "tessera/tessera.h"

namespace tessera {

using ProgressCallback = std::function<bool(const TuneProgress&)>;

// The text "the first bind of a model measures ...". It says what that is expected to take and to
// gain; in which folder the plan is kept, which is the first of `folders` that can be written to;
// and how to switch measuring off.
std::string measuring_notice(const TuningQuote& quote,
                             const std::vector<std::filesystem::path>& folders);

// Returns a callback that calls `report`, which may be empty, and writes the notice to `log` when
// measuring starts: once in a process, and only if measuring is expected to take a second or more.
ProgressCallback with_measuring_notice(ProgressCallback report,
                                       std::vector<std::filesystem::path> folders, const Log& log);

}  // namespace tessera
