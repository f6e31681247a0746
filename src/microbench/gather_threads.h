// Threads of a pool that are awake before something is timed on them.
#pragma once

#include "base/parallel.h"

namespace tessera::tuning {

// Returns when all threads of the pool are awake, as they are in the middle of a plan: otherwise
// the first ones might do the work of a short kernel before the others have woken. Gives up after a
// moment on threads that the system does not run. Call it inside ThreadPool::execute().
void gather_threads(ThreadPool& pool);

}  // namespace tessera::tuning
