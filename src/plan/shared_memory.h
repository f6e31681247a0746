// Which buffers lie in the memory of which while a plan is made, and whether those who use them can
// live with where they lie.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "plan/execution_plan.h"

namespace tessera {

// What a port takes.
struct PortRequirements {
  int64_t alignment_bytes = TESSERA_ALIGNMENT_BYTES;
  bool accepts_strides = false;
};

// Of an input or output of `step`, by position.
PortRequirements requirements_of(const ExecutionStep& step, const Offers& offers, bool is_output,
                                 size_t position);

// The buffer in whose memory `buffer` lies: itself for most.
int owner_of(const ExecutionPlan& plan, int buffer);

bool meets(const PlanBuffer& buffer, const PortRequirements& needs);

// Which buffers lie in whose memory, and what the steps so far that read or write them can live
// with. Its questions take constant time, so that plans of many steps take no longer a step.
class AliasTracker {
 public:
  // `plan` must outlive it; what it holds already is noted.
  AliasTracker(ExecutionPlan& plan, const Offers& offers);

  // A buffer that `plan` has got since, once it has its owner.
  void note_buffer(int buffer);
  // A step that reads or writes buffers that were noted.
  void note_step(const ExecutionStep& step);

  // Whether all steps that use what lies in the memory of `owner` could do so if that memory began
  // `offset` bytes behind an aligned address.
  bool can_move(int owner, int64_t offset) const;
  // Whether they could use `owner` there with strides. False where others lie in its memory.
  bool can_stride(int owner, int64_t offset) const;

  // Puts all that lies in the memory of `owner` into that of `whole`'s owner, beginning `offset`
  // bytes after `whole` does.
  void move(int owner, int whole, int64_t offset);

 private:
  struct Memory {
    std::vector<int> members;  // the buffers in it, its owner included
    // Bit i: all could use it if it began i bytes behind an aligned address.
    uint64_t fine_offsets = ~uint64_t{0};
    bool accepts_strides = true;  // all do
  };

  void note_use(int buffer, const PortRequirements& needs);

  ExecutionPlan& plan_;
  const Offers& offers_;
  std::vector<Memory> memories_;  // by owner
};

}  // namespace tessera
