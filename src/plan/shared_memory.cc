#include "plan/shared_memory.h"

#include <bit>

#include "base/containers/at.h"

namespace tessera {
namespace {

static_assert(TESSERA_ALIGNMENT_BYTES == 64, "a bit of 64 for each offset that is not aligned");

// Bit i is set if a buffer that begins `offset` bytes after the beginning of its memory is aligned
// to `alignment` (a power of two up to 64) if that memory begins i bytes after an aligned address.
uint64_t aligned_offsets(int64_t alignment, int64_t offset) {
  uint64_t bits = 0;
  const int64_t first = (alignment - offset % alignment) % alignment;
  for (int64_t start = first; start < TESSERA_ALIGNMENT_BYTES; start += alignment) {
    bits |= uint64_t{1} << static_cast<uint64_t>(start);
  }
  return bits;
}

}  // namespace

PortRequirements requirements_of(const ExecutionStep& step, const Offers& offers, bool is_output,
                                 size_t position) {
  switch (step.kind) {
    case ExecutionStep::Kind::Kernel:
    case ExecutionStep::Kind::Values: {
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

bool meets(const PlanBuffer& buffer, const PortRequirements& needs) {
  return buffer.offset % needs.alignment_bytes == 0 &&
         (buffer.strides.empty() || needs.accepts_strides);
}

AliasTracker::AliasTracker(ExecutionPlan& plan, const Offers& offers)
    : plan_(plan), offers_(offers) {
  for (size_t buffer = 0; buffer < plan.buffers.size(); ++buffer) {
    note_buffer(static_cast<int>(buffer));
  }
  for (const ExecutionStep& step : plan.steps) note_step(step);
}

void AliasTracker::note_buffer(int buffer) {
  if (memories_.size() <= at(buffer)) memories_.resize(at(buffer) + 1);
  const int owner = owner_of(plan_, buffer);
  if (memories_.size() <= at(owner)) memories_.resize(at(owner) + 1);
  memories_[at(owner)].members.push_back(buffer);
}

void AliasTracker::note_step(const ExecutionStep& step) {
  for (size_t position = 0; position < step.inputs.size(); ++position) {
    note_use(step.inputs[position], requirements_of(step, offers_, false, position));
  }
  for (size_t position = 0; position < step.outputs.size(); ++position) {
    note_use(step.outputs[position].buffer, requirements_of(step, offers_, true, position));
  }
}

void AliasTracker::note_use(int buffer, const PortRequirements& needs) {
  Memory& memory = memories_[at(owner_of(plan_, buffer))];
  memory.fine_offsets &= aligned_offsets(needs.alignment_bytes, plan_.buffers[at(buffer)].offset);
  memory.accepts_strides = memory.accepts_strides && needs.accepts_strides;
}

bool AliasTracker::can_move(int owner, int64_t offset) const {
  const auto remainder = static_cast<uint64_t>(offset % TESSERA_ALIGNMENT_BYTES);
  return remainder == 0 || (memories_[at(owner)].fine_offsets >> remainder & 1U) != 0;
}

bool AliasTracker::can_stride(int owner, int64_t offset) const {
  const Memory& memory = memories_[at(owner)];
  const auto remainder = static_cast<uint64_t>(offset % TESSERA_ALIGNMENT_BYTES);
  return memory.members.size() == 1 && memory.accepts_strides &&
         (memory.fine_offsets >> remainder & 1U) != 0;
}

void AliasTracker::move(int owner, int whole, int64_t offset) {
  const int new_owner = owner_of(plan_, whole);
  const int64_t begin = plan_.buffers[at(whole)].offset + offset;
  Memory& from = memories_[at(owner)];
  Memory& to = memories_[at(new_owner)];
  for (const int member : from.members) {
    plan_.buffers[at(member)].owner = new_owner;
    plan_.buffers[at(member)].offset += begin;
    to.members.push_back(member);
  }
  to.fine_offsets &=
      std::rotr(from.fine_offsets, static_cast<int>(begin % TESSERA_ALIGNMENT_BYTES));
  to.accepts_strides = to.accepts_strides && from.accepts_strides;
  from = {};
}

}  // namespace tessera
