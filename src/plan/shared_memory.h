// Tracks, while a plan is made, which buffers are inside the memory of others, and whether their
// users accept the resulting alignment and strides.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "plan/execution_plan.h"

namespace tessera {

// The requirements of a port on its buffer.
struct PortRequirements {
  int64_t alignment_bytes = TESSERA_ALIGNMENT_BYTES;
  bool accepts_strides = false;
};

// The requirements of the input or output of `step` at `position`.
PortRequirements requirements_of(const ExecutionStep& step, const Offers& offers, bool is_output,
                                 size_t position);

// The buffer whose memory contains `buffer`; `buffer` itself if it has its own memory.
int owner_of(const ExecutionPlan& plan, int buffer);

bool meets(const PlanBuffer& buffer, const PortRequirements& needs);

// Tracks which buffers share memory, and which alignments and strides the steps that use them
// accept. The queries take constant time, so planning time for each step does not grow with the
// number of steps.
class AliasTracker {
 public:
  // `plan` must outlive this object. Notes the buffers and steps that it already contains.
  AliasTracker(ExecutionPlan& plan, const Offers& offers);

  // Notes a buffer that was added to `plan`. Its owner must be set.
  void note_buffer(int buffer);
  // Notes a step. The buffers that it reads or writes must be noted.
  void note_step(const ExecutionStep& step);

  // Whether all steps that use the memory of `owner` accept it if it begins `offset` bytes after an
  // aligned address.
  bool can_move(int owner, int64_t offset) const;
  // Whether they accept `owner` there with strides. False if other buffers are in its memory.
  bool can_stride(int owner, int64_t offset) const;

  // Moves all buffers in the memory of `owner` into the memory that contains `whole`, to `offset`
  // bytes after the beginning of `whole`.
  void move(int owner, int whole, int64_t offset);

 private:
  struct Memory {
    std::vector<int> members;  // the buffers in this memory, including the owner
    // Bit i: all users accept the memory if it begins i bytes after an aligned address.
    uint64_t fine_offsets = ~uint64_t{0};
    bool accepts_strides = true;  // all users do
  };

  void note_use(int buffer, const PortRequirements& needs);

  ExecutionPlan& plan_;
  const Offers& offers_;
  std::vector<Memory> memories_;  // by owner
};

}  // namespace tessera
