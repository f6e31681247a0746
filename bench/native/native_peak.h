// The peak arithmetic rate of the machine, with which kernels that are bound by arithmetic are
// compared.
#pragma once

#include "base/threads/parallel.h"

namespace tessera::bench {

// Float32 operations per second of all threads of the pool together; a multiply-add counts as 2.
// Measured on independent chains of multiply-adds in registers, in the widest vectors of the
// machine.
double measure_flops_per_second(ThreadPool& pool);

}  // namespace tessera::bench
