// The order of a plan's steps, where another one needs less memory.
#pragma once

#include <vector>

#include "plan/execution_plan.h"
#include "plan/order_steps.h"

namespace tessera {

// What the order of `plan`'s steps decides, as order_steps() has it. Before outputs are written in
// place; steps stay on their side of one whose outputs get their sizes when run.
OrderProblem order_problem(const ExecutionPlan& plan, const Offers& offers);

// The steps of `plan` as `order` has them.
void reorder(ExecutionPlan& plan, const std::vector<int>& order);

}  // namespace tessera
