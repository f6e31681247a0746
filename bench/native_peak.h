// What the machine computes at most: what kernels that are bound by arithmetic are held against.
#pragma once

#include "base/parallel.h"

namespace tessera::bench {

// Float32 operations a second of all threads of the pool together, a multiply-add counted as 2:
// measured on chains of them in registers, in the widest vectors of the machine.
double measure_flops_per_second(ThreadPool& pool);

}  // namespace tessera::bench
