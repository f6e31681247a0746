// What is wrong with the plans within a step.
#pragma once

#include <string>

#include "plan/execution_plan.h"

namespace tessera {

// Says what is wrong with the branches of `step`, which is one of `plan`, or
// "": one that is itself unsound, whose arena exceeds the step's workspace, or
// whose inputs and results are not those of the step.
std::string explain_branches(const ExecutionPlan& plan, const ExecutionStep& step);

}  // namespace tessera
