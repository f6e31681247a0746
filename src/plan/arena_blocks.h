// Lists the blocks of the arena with their lifetimes. Memory planning assigns offsets to them, and
// reports draw them.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/execution_plan.h"

namespace tessera {

// A separate block of memory in the arena: a buffer together with all buffers inside it, or the
// workspace of a step.
struct ArenaBlock {
  int buffer = -1;  // the owner; -1: a workspace
  DeviceId device = kHostDevice;
  int lower = 0;  // the first step that uses it
  int upper = 0;  // one past the last
  int64_t bytes = 0;
  int64_t offset = 0;
};

// The blocks of all arenas, in the order of their first steps. A buffer that no step uses has none.
std::vector<ArenaBlock> arena_blocks(const ExecutionPlan& plan);

// Finds offsets for all blocks of `plan` and sets the sizes and bounds of its arenas. Before the
// call, the offsets of buffers count from the beginning of their owner; afterwards, from the
// beginning of the arena.
void assign_offsets(ExecutionPlan& plan);

// Sums of the bytes of the values that steps write to the arena of the host, as if no two of them
// shared memory.
struct ValueBytes {
  int64_t stored = 0;   // as the layouts store them, plus workspaces
  int64_t logical = 0;  // the elements without padding, plus workspaces
};
ValueBytes value_bytes(const ExecutionPlan& plan);

}  // namespace tessera
