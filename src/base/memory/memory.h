// How much memory the machine and the process have.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tessera {

// Bytes that this process can still allocate: the machine's available memory, or less if a control
// group around the process, or a limit of the process (ulimit -v, -d), leaves less. INT64_MAX if
// the system does not tell. Takes some ten microseconds, and a millisecond where there are many
// control groups.
int64_t available_memory_bytes();

// An allocation of this size or more is compared with available_memory_bytes() before: the system
// overcommits, and ends a process that then touches the memory. For smaller ones, that would take
// longer than the allocation.
inline constexpr int64_t kLargeAllocationBytes = int64_t{1} << 24;

// Whether allocations fit into memory, for one thread. Small ones are compared when they add up to
// a large one: a loop may allocate a little in each iteration and keep it.
class MemoryCheck {
 public:
  // `available` gives the bytes that the process could still allocate; tests substitute it.
  explicit MemoryCheck(int64_t (*available)() = available_memory_bytes) : available_(available) {}

  bool allows(int64_t bytes) {
    unchecked_bytes_ += std::min(bytes, kLargeAllocationBytes);
    if (unchecked_bytes_ < kLargeAllocationBytes) return true;
    unchecked_bytes_ = 0;
    return bytes <= available_();
  }

 private:
  int64_t (*available_)();
  int64_t unchecked_bytes_ = 0;
};

// Bytes of memory of the machine, or the least limit of the control groups around the process if
// that is less.
// INT64_MAX if the system does not tell.
int64_t machine_memory_bytes();

// The peak resident size in bytes of a process: this one, or the one with id `process_id`. 0 if the
// system does not tell or there is no such process.
int64_t peak_resident_bytes(int process_id = 0);

// The memory that the process has allocated; zeros as far as the system does not tell.
struct AllocatedMemory {
  int64_t in_use_bytes = 0;    // given by malloc and not got back
  int64_t heap_bytes = 0;      // that malloc has from the system, in use or not
  int64_t resident_bytes = 0;  // private memory, including what libraries map for compiled code
};
// Takes some ten microseconds, and more for a heap with many holes.
AllocatedMemory allocated_memory();

// How much more is allocated: by malloc, and resident beside what malloc has. Not negative.
int64_t grown_bytes(const AllocatedMemory& before, const AllocatedMemory& after);

// Returns freed memory to the system, as far as the allocator can. Takes milliseconds, so call it
// only after much was freed at once. Thread-safe.
void return_freed_memory();

}  // namespace tessera
