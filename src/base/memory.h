// How much memory the machine and the process have.
#pragma once

#include <cstdint>

namespace tessera {

// Bytes that this process can still allocate: the machine's available memory, or less if the
// control group or the address-space limit of the process leaves less. INT64_MAX if the system does
// not tell.
int64_t available_memory_bytes();

// Bytes of memory of the machine, or the limit of the process's control group if that is less.
// INT64_MAX if the system does not tell.
int64_t machine_memory_bytes();

// The peak resident size in bytes of a process: this one, or the one with id `process_id`. 0 if the
// system does not tell or there is no such process.
int64_t peak_resident_bytes(int process_id = 0);

// Returns freed memory to the system, as far as the allocator can. Takes milliseconds, so call it
// only after much was freed at once. Thread-safe.
void return_freed_memory();

}  // namespace tessera
