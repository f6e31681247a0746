// How much memory the machine still has.
#pragma once

#include <cstdint>

namespace tessera {

// Bytes that this process could still allocate: the machine's available memory, or what the
// process's control group and address-space limit leave where that is less.
// INT64_MAX where the system does not tell.
int64_t available_memory_bytes();

// Bytes of memory that the machine has, or the limit of the process's control group where that is
// less. INT64_MAX where the system does not tell.
int64_t machine_memory_bytes();

// The most that a process had resident at any time: this one, or the one with that id. 0 where the
// system does not tell, or there is no such process.
int64_t peak_resident_bytes(int process_id = 0);

// Gives memory that was freed back to the system, as far as the allocator can. Takes milliseconds:
// for after much was freed at once. Safe from any thread.
void return_freed_memory();

}  // namespace tessera
