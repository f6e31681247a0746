// Which buffers lie in the memory of which while a plan is made, and whether those who use them can
// live with where they lie.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "plan/execution_plan.h"

namespace tessera {

// What a port takes.
struct PortNeeds {
  int64_t alignment_bytes = TESSERA_ALIGNMENT_BYTES;
  bool accepts_strides = false;
};

// Of an input or output of `step`, by position.
PortNeeds needs_of(const ExecutionStep& step, const Offers& offers, bool is_output,
                   size_t position);

// The buffer in whose memory `buffer` lies: itself for most.
int owner_of(const ExecutionPlan& plan, int buffer);

bool meets(const PlanBuffer& buffer, const PortNeeds& needs);

// Whether all steps so far that read or write what lies in the memory of `owner` could do so if
// that memory began `offset` bytes behind an aligned address.
bool can_move(const ExecutionPlan& plan, const Offers& offers, int owner, int64_t offset);

// Whether they could use `buffer` there with strides. False where others lie in its memory.
bool can_stride(const ExecutionPlan& plan, const Offers& offers, int buffer, int64_t offset);

// Puts all that lies in the memory of `owner` into that of `whole`'s owner, beginning `offset`
// bytes after `whole` does.
void move_memory(ExecutionPlan& plan, int owner, int whole, int64_t offset);

}  // namespace tessera
