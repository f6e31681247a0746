#include "plan/arena_blocks.h"

#include <algorithm>

#include "base/containers/at.h"
#include "base/errors/check.h"
#include "plan/packing/memory_plan.h"
#include "plan/shared_memory.h"

namespace tessera {
namespace {

bool is_in_arena(const ExecutionPlan& plan, int buffer) {
  return plan.buffers[at(buffer)].kind == PlanBuffer::Kind::Arena;
}

// Offsets for the blocks of one device, in their order.
MemoryPlan plan_arena(const std::vector<ArenaBlock>& blocks, DeviceId device, int64_t alignment) {
  std::vector<BufferRequest> requests;
  for (const ArenaBlock& block : blocks) {
    if (block.device != device) continue;
    requests.push_back({.lower = block.lower, .upper = block.upper, .bytes = block.bytes});
  }
  MemoryPlan memory = plan_memory(requests, {.alignment = alignment});
#ifdef TESSERA_CHECKS
  const std::string violation = explain_violation(requests, memory, alignment);
  TESSERA_CHECK(violation.empty(), violation);
#endif
  return memory;
}

}  // namespace

std::vector<ArenaBlock> arena_blocks(const ExecutionPlan& plan) {
  std::vector<ArenaBlock> blocks;
  std::vector<int> block_of(plan.buffers.size(), -1);  // by owner
  const auto use = [&](int buffer, int step) {
    if (!is_in_arena(plan, buffer)) return;
    const int owner = owner_of(plan, buffer);
    int& block = block_of[at(owner)];
    if (block < 0) {
      const PlanBuffer& memory = plan.buffers[at(owner)];
      block = static_cast<int>(blocks.size());
      blocks.push_back({.buffer = owner,
                        .device = memory.device,
                        .lower = step,
                        .bytes = memory.bytes,
                        .offset = memory.offset});
    }
    blocks[at(block)].upper = step + 1;
  };
  for (size_t index = 0; index < plan.steps.size(); ++index) {
    const ExecutionStep& step = plan.steps[index];
    const int number = static_cast<int>(index);
    for (const int buffer : step.inputs) use(buffer, number);
    for (const PlanOutput& output : step.outputs) use(output.buffer, number);
    if (step.workspace_bytes == 0) continue;
    blocks.push_back({.device = step.device,
                      .lower = number,
                      .upper = number + 1,
                      .bytes = step.workspace_bytes,
                      .offset = step.workspace_offset});
  }
  return blocks;
}

void assign_offsets(ExecutionPlan& plan) {
  const std::vector<ArenaBlock> blocks = arena_blocks(plan);
  std::vector<int64_t> begins(plan.buffers.size(), 0);  // by owner
  const auto arenas = static_cast<int32_t>(plan.device_arenas.size()) + 1;
  for (DeviceId device = kHostDevice; device.index < arenas; ++device.index) {
    const bool is_host = device == kHostDevice;
    const MemoryPlan memory =
        plan_arena(blocks, device,
                   is_host ? TESSERA_ALIGNMENT_BYTES
                           : plan.device_arenas[at(device.index - 1)].alignment_bytes);
    size_t position = 0;
    for (const ArenaBlock& block : blocks) {
      if (block.device != device) continue;
      const int64_t offset = memory.offsets[position++];
      int64_t& begin = block.buffer < 0 ? plan.steps[at(block.lower)].workspace_offset
                                        : begins[at(block.buffer)];
      begin = offset;
    }
    if (is_host) {
      plan.arena_bytes = memory.arena_bytes;
      plan.lower_bound_bytes = memory.lower_bound_bytes;
      plan.is_smallest_arena = memory.is_smallest;
      continue;
    }
    ArenaSize& arena = plan.device_arenas[at(device.index - 1)];
    arena.bytes = memory.arena_bytes;
    arena.lower_bound_bytes = memory.lower_bound_bytes;
    arena.is_smallest = memory.is_smallest;
  }
  for (size_t index = 0; index < plan.buffers.size(); ++index) {
    const int buffer = static_cast<int>(index);
    if (is_in_arena(plan, buffer)) plan.buffers[index].offset += begins[at(owner_of(plan, buffer))];
  }
}

ValueBytes value_bytes(const ExecutionPlan& plan) {
  ValueBytes total;
  for (const ExecutionStep& step : plan.steps) {
    const int64_t workspace = step.device == kHostDevice ? step.workspace_bytes : 0;
    total.stored += workspace;
    total.logical += workspace;
    if (step.kind == ExecutionStep::Kind::View) continue;
    for (const PlanOutput& output : step.outputs) {
      const PlanBuffer& buffer = plan.buffers[at(output.buffer)];
      const bool is_of_host = buffer.device == kHostDevice;
      if (buffer.kind != PlanBuffer::Kind::Arena || !is_of_host) continue;
      total.stored += buffer.bytes;
      // A sparse layout may store fewer bytes than the dense value has.
      total.logical +=
          std::min(buffer.bytes, tensor_bytes(buffer.type->element, buffer.type->dims));
    }
  }
  return total;
}

}  // namespace tessera
