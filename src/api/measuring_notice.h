// What a process says before it measures for the first time. Progress, which says how far that is,
// is told by bind_progress.h.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "tessera/tessera.h"

namespace tessera {

using ProgressCallback = std::function<bool(const TuneProgress&)>;

// "the first bind of a model measures ...": for about how long, `seconds_allowed` being the most;
// where the plan is kept, which is the first of `folders` that can be written to; and how to switch
// it off.
std::string measuring_notice(const std::optional<double>& seconds_allowed,
                             const std::vector<std::filesystem::path>& folders);

// `tell`, which may be empty, with a notice to `log` when measuring starts: once in this process,
// and never for less than a second.
ProgressCallback with_measuring_notice(ProgressCallback tell,
                                       std::vector<std::filesystem::path> folders, const Log& log);

}  // namespace tessera
