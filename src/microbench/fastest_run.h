// Several runs of a kernel, of which the fastest counts, because disturbances only slow down.
#pragma once

#include <functional>

#include "microbench/bench.h"

namespace tessera::tuning {

// The fastest of `runs` runs, or the first that fails. Runs that another process preempted are
// repeated, within limits on their number and time.
Outcome fastest_of(int runs, const std::function<Outcome()>& run);

}  // namespace tessera::tuning
