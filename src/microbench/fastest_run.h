// How runs of a kernel are timed: the threads are awake before, and of several runs the fastest
// counts, because disturbances only slow down.
#pragma once

#include <functional>

#include "base/threads/parallel.h"
#include "microbench/bench.h"

namespace tessera::tuning {

// The fastest of `runs` runs, or the first that fails. Runs that another process preempted are
// repeated, within limits on their number and time.
Outcome fastest_of(int runs, const std::function<Outcome()>& run);

// Returns when all threads of the pool are awake, as they are in the middle of a plan: otherwise
// the first ones might do the work of a short kernel before the others have woken. Gives up after a
// moment on threads that the system does not run. Call it inside ThreadPool::execute().
void gather_threads(ThreadPool& pool);

}  // namespace tessera::tuning
