#include "plan/shared_memory.h"

#include <algorithm>

namespace tessera {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

// Whether `is_fine` holds for all that steps need of buffers in the memory of `owner`.
template <class Predicate>
bool all_users(const ExecutionPlan& plan, const Offers& offers, int owner, Predicate is_fine) {
  return std::all_of(plan.steps.begin(), plan.steps.end(), [&](const ExecutionStep& step) {
    for (size_t position = 0; position < step.inputs.size(); ++position) {
      const int buffer = step.inputs[position];
      if (owner_of(plan, buffer) != owner) continue;
      if (!is_fine(plan.buffers[at(buffer)], needs_of(step, offers, false, position))) return false;
    }
    for (size_t position = 0; position < step.outputs.size(); ++position) {
      const int buffer = step.outputs[position].buffer;
      if (owner_of(plan, buffer) != owner) continue;
      if (!is_fine(plan.buffers[at(buffer)], needs_of(step, offers, true, position))) return false;
    }
    return true;
  });
}

}  // namespace

PortNeeds needs_of(const ExecutionStep& step, const Offers& offers, bool is_output,
                   size_t position) {
  switch (step.kind) {
    case ExecutionStep::Kind::Kernel:
    case ExecutionStep::Kind::Branch: {
      const Candidate& candidate = offers.candidates[at(step.candidate)];
      if (is_output) {
        const CandidateOutput& port = candidate.outputs[position];
        return {port.alignment_bytes, port.accepts_strides};
      }
      const CandidateInput& port = candidate.inputs[position];
      return {port.alignment_bytes, port.accepts_strides};
    }
    case ExecutionStep::Kind::Convert:
      return {};
    case ExecutionStep::Kind::Copy:
    case ExecutionStep::Kind::View:
      return {.alignment_bytes = 1, .accepts_strides = true};
  }
  return {};
}

int owner_of(const ExecutionPlan& plan, int buffer) {
  const int owner = plan.buffers[at(buffer)].owner;
  return owner < 0 ? buffer : owner;
}

bool meets(const PlanBuffer& buffer, const PortNeeds& needs) {
  return buffer.offset % needs.alignment_bytes == 0 &&
         (buffer.strides.empty() || needs.accepts_strides);
}

bool can_move(const ExecutionPlan& plan, const Offers& offers, int owner, int64_t offset) {
  if (offset % TESSERA_ALIGNMENT_BYTES == 0) return true;
  return all_users(plan, offers, owner, [&](const PlanBuffer& buffer, const PortNeeds& needs) {
    return (offset + buffer.offset) % needs.alignment_bytes == 0;
  });
}

bool can_stride(const ExecutionPlan& plan, const Offers& offers, int buffer, int64_t offset) {
  for (const PlanBuffer& other : plan.buffers) {
    if (other.owner == buffer) return false;
  }
  return all_users(plan, offers, buffer, [&](const PlanBuffer&, const PortNeeds& needs) {
    return needs.accepts_strides && offset % needs.alignment_bytes == 0;
  });
}

void move_memory(ExecutionPlan& plan, int owner, int whole, int64_t offset) {
  const int new_owner = owner_of(plan, whole);
  const int64_t begin = plan.buffers[at(whole)].offset + offset;
  for (size_t index = 0; index < plan.buffers.size(); ++index) {
    if (owner_of(plan, static_cast<int>(index)) != owner) continue;
    plan.buffers[index].owner = new_owner;
    plan.buffers[index].offset += begin;
  }
}

}  // namespace tessera
