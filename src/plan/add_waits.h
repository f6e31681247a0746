// Orders the steps of different devices.
#pragma once

#include "plan/execution_plan.h"

namespace tessera {

// Sets ExecutionStep::waits and ExecutionPlan::last_waits, after all offsets are known. A step
// waits for the last step of another device that accesses memory that it accesses too, if one of
// both writes it, unless an earlier wait implies this one. The end of the run waits for steps that
// access the memory of the host or of another device. Does nothing if there are no devices but the
// host's processor.
void add_waits(ExecutionPlan& plan);

}  // namespace tessera
