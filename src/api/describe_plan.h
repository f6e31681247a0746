// What a bound plan looks like from outside.
#pragma once

#include "engine/built_plan.h"
#include "ops/registry.h"
#include "tessera/tessera.h"

namespace tessera {

PlanDescription describe_plan(const BuiltPlan& built, int64_t pack_bytes,
                              const ops::Registry& registry);

}  // namespace tessera
