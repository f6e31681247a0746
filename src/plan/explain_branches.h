// Validates the plans within a step.
#pragma once

#include <string>

#include "plan/execution_plan.h"

namespace tessera {

// Returns what is wrong with the branches of `step`, a step of `plan`, or "": a branch that is
// itself unsound, whose arena exceeds the workspace of the step, that runs on other threads than
// the step, or whose inputs or results differ from those of the step.
std::string explain_branches(const ExecutionPlan& plan, const ExecutionStep& step);

}  // namespace tessera
