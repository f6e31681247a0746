// What lies in the arena when: what offsets are found for, and what the reports draw.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/execution_plan.h"

namespace tessera {

// Memory of its own in the arena: a buffer with all that lies in it, or the workspace of a step.
struct ArenaBlock {
  int buffer = -1;  // the owner; -1 for a workspace
  int lower = 0;    // the first step that uses it
  int upper = 0;    // one past the last
  int64_t bytes = 0;
  int64_t offset = 0;
};

// In the order of their first steps. Buffers that no step uses have no block.
std::vector<ArenaBlock> arena_blocks(const ExecutionPlan& plan);

// Finds offsets for all blocks of `plan`, whose buffers have those from the beginning of their
// owner, and fills in arena_bytes and what is known of it.
void assign_offsets(ExecutionPlan& plan);

// Bytes of the values that steps write to the arena, each for itself.
struct ValueBytes {
  int64_t stored = 0;   // as the layouts store them, and workspaces
  int64_t logical = 0;  // the same without padding: their elements alone
};
ValueBytes value_bytes(const ExecutionPlan& plan);

}  // namespace tessera
