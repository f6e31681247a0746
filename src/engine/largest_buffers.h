// Names the largest buffers of a plan in errors.
#pragma once

#include <string>

#include "engine/built_plan.h"

namespace tessera {

// "'conv1' with 4096 bytes, ...": the largest of the buffers in the arena, the results, and the
// weights that are packed or converted for the plan.
std::string largest_buffers_text(const BuiltPlan& built);

}  // namespace tessera
