// Decides which kernels write an output over an input.
#pragma once

#include "plan/execution_plan.h"

namespace tessera {

// Lets each output that its candidate can write in place of an input, or add to an input, share the
// memory of that input if nothing else in that memory is needed any more. Sets the requests of
// these outputs. Inserts a copy before a kernel that adds to a value that other steps still need.
// The offsets of buffers count from the beginning of their owner, before and after the call.
void share_in_place(ExecutionPlan& plan, const Offers& offers);

}  // namespace tessera
