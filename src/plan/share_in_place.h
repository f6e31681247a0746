// Which kernels write their output over an input.
#pragma once

#include "plan/execution_plan.h"

namespace tessera {

// Sets the request of every output that its candidate can write in place of an input, or add to
// one, and lets the two share memory, where nothing else in that memory is needed any more. Puts a
// copy before a kernel that adds to what others still need. Offsets count from the beginning of the
// owner, before and after.
void share_in_place(ExecutionPlan& plan, const Offers& offers);

}  // namespace tessera
