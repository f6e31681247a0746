// What takes the most memory of a plan, for errors.
#pragma once

#include <string>

#include "engine/built_plan.h"

namespace tessera {

// "'conv1' with 4096 bytes, ...": the largest of what lies in the arena, of the results and of the
// weights that are written anew for the plan.
std::string largest_buffers_text(const BuiltPlan& built);

}  // namespace tessera
