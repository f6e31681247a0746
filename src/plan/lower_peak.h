// Reorders the steps of a plan to lower its memory peak.
#pragma once

#include <vector>

#include "plan/execution_plan.h"
#include "plan/order_steps.h"

namespace tessera {

// Describes the steps of `plan` for order_steps(). Must be called before share_in_place(). A step
// whose output sizes are known only in the run is a barrier: no other step may pass it.
OrderProblem order_problem(const ExecutionPlan& plan, const Offers& offers);

// Puts the steps of `plan` into `order`.
void reorder(ExecutionPlan& plan, const std::vector<int>& order);

}  // namespace tessera
