// Measures everything that is offered for a graph.
#pragma once

#include <memory>
#include <vector>

#include "measure/tune.h"

namespace tessera::tuning {

// Measures all candidates and conversions of the task.
TuneReport tune(const TuningTask& task, std::vector<std::shared_ptr<const Plugin>> plugins,
                const TuneOptions& options, CostTable& table);

}  // namespace tessera::tuning
