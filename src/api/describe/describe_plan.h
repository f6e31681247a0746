// Converts a built plan to the descriptions of tessera/descriptions.h; describe.h does it for
// graphs.
#pragma once

#include "engine/built_plan.h"
#include "ops/registry.h"
#include "tessera/tessera.h"

namespace tessera {

// `threads` is the number of threads of the pool on which the plan runs.
PlanDescription describe_plan(const BuiltPlan& built, int64_t pack_bytes, int threads,
                              const ops::Registry& registry);

}  // namespace tessera
