// How much memory the machine still has.
#pragma once

#include <cstdint>

namespace tessera {

// Bytes that this process could still allocate: the machine's available memory, or what the
// process's control group and address-space limit leave where that is less.
// INT64_MAX where the system does not tell.
int64_t available_memory_bytes();

}  // namespace tessera
