#include "plan/memory_use.h"

#include "ops/work.h"

namespace tessera {

int64_t MemoryUse::total_bytes() const {
  int64_t total = arena_bytes;
  for (const int64_t bytes : {output_bytes, weight_bytes, library_bytes}) {
    total = ops::saturating_add(total, bytes);
  }
  return total;
}

MemoryUse memory_use(const ExecutionPlan& plan, const Offers& offers) {
  MemoryUse use{.arena_bytes = plan.arena_bytes};
  for (const PlanBuffer& buffer : plan.buffers) {
    const bool is_new_result =
        buffer.kind == PlanBuffer::Kind::Output && buffer.owner < 0 && buffer.device == kHostDevice;
    if (is_new_result) use.output_bytes = ops::saturating_add(use.output_bytes, buffer.bytes);
  }
  for (const PlanConstant& constant : plan.constants) {
    if (constant.device != kHostDevice) continue;
    use.weight_bytes = ops::saturating_add(use.weight_bytes, constant.bytes);
  }
  for (const ExecutionStep& step : plan.steps) {
    if (step.kind != ExecutionStep::Kind::Kernel) continue;
    const Candidate& candidate = offers.candidates[static_cast<size_t>(step.candidate)];
    use.library_bytes = ops::saturating_add(use.library_bytes, candidate.library_bytes);
  }
  return use;
}

}  // namespace tessera
