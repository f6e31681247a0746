// Times the runs of bound models and each of their steps, for `tessera explain` and `tessera diff`.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "cli/commands/bound_model.h"
#include "cli/plans/explain_report.h"

namespace tessera::cli {

// The limit at which measuring ends. Without --runs: enough for a stable median, but short if
// models are slow.
struct RunLimit {
  uint64_t runs = 10;
  std::chrono::nanoseconds time = std::chrono::seconds(2);  // of each model
};

// The limit of --runs, which may not have been given.
RunLimit parse_run_limit(const std::optional<std::string>& runs);

// The plan of the model, and the settings of the measurement. measure_steps() adds the times.
ExplainReport describe_bound(const LoadedModel& loaded, const BoundModel& bound,
                             const ModelRequest& request);

struct MeasuredModel {
  BoundModel* bound = nullptr;
  ExplainReport* report = nullptr;  // gets the times
};

// Runs each model once to warm up, then until `limit` is reached; at least once, and fewer times if
// interrupted. Several models take turns, so that a disturbance of the machine affects all of them.
// A turn is several runs, of which the first does not count: it finds the caches full of the other
// model's data.
void measure_steps(std::span<const MeasuredModel> models, const RunLimit& limit,
                   Progress& progress);

}  // namespace tessera::cli
