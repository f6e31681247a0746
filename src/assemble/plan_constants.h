// Makes the constants of a plan in the forms that its steps read.
#pragma once

#include <optional>

#include "backend/packs.h"
#include "base/parallel.h"
#include "engine/built_plan.h"
#include "graph/released_weight.h"

namespace tessera {

// Fills in `constants` and `constant_results` of `built`, which must have its plan. Packs come from
// `packs`; missing ones are made in `pool`. Returns a released weight whose elements are needed, if
// there is one; then nothing is filled in. Throws the errors of packing and converting.
[[nodiscard]] std::optional<ReleasedWeight> make_constants(BuiltPlan& built, PackStore& packs,
                                                           ThreadPool& pool);

// The bytes of the constants that steps read in another form than that of the model.
int64_t pack_bytes(const ExecutionPlan& plan);

}  // namespace tessera
