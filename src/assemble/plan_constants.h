// The constants of a plan as its steps read them.
#pragma once

#include <optional>

#include "backend/packs.h"
#include "base/parallel.h"
#include "engine/built_plan.h"
#include "graph/released_weight.h"

namespace tessera {

// Fills `constants` and `constant_results` of `built`, whose plan stands: packs from `packs`, made
// in `pool` where there is none yet. Gives a released weight whose elements it needs, if there is
// one; then nothing is filled in. Throws what packing and converting fail with.
[[nodiscard]] std::optional<ReleasedWeight> make_constants(BuiltPlan& built, PackStore& packs,
                                                           ThreadPool& pool);

// What those constants take that steps read in another form than the model has them.
int64_t pack_bytes(const ExecutionPlan& plan);

}  // namespace tessera
