// The constants of a plan as its steps read them.
#pragma once

#include "backend/packs.h"
#include "base/parallel.h"
#include "engine/built_plan.h"

namespace tessera {

// Fills `constants` and `constant_results` of `built`, whose plan stands: packs from `packs`, made
// in `pool` where there is none yet. Throws LetGo where elements are needed that were let go, and
// what packing and converting fail with.
void make_constants(BuiltPlan& built, PackStore& packs, ThreadPool& pool);

// What those constants take that steps read in another form than the model has them.
int64_t pack_bytes(const ExecutionPlan& plan);

}  // namespace tessera
