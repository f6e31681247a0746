// What a bound plan looks like from outside.
#pragma once

#include "engine/built_plan.h"
#include "ops/registry.h"
#include "tessera/tessera.h"

namespace tessera {

// `threads` of the pool that it runs on.
PlanDescription describe_plan(const BuiltPlan& built, int64_t pack_bytes, int threads,
                              const ops::Registry& registry);

}  // namespace tessera
