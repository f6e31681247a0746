#include <map>
#include <string>

#include "plan/execution_plan.h"

namespace tessera {
namespace {

// Memory as a map from byte ranges to the buffer whose contents they hold. Every write clears what
// it overlaps.
class MemoryModel {
 public:
  explicit MemoryModel(const ExecutionPlan& plan)
      : plan_(plan), is_written_(plan.buffers.size(), false) {
    for (size_t index = 0; index < plan.buffers.size(); ++index) {
      const PlanBuffer::Kind kind = plan.buffers[index].kind;
      is_written_[index] = kind == PlanBuffer::Kind::Input || kind == PlanBuffer::Kind::Constant;
    }
  }

  bool holds(int buffer) const { return is_written_[static_cast<size_t>(buffer)]; }

  void overwrite(int64_t offset, int64_t bytes) {
    for (size_t index = 0; index < plan_.buffers.size(); ++index) {
      const PlanBuffer& other = plan_.buffers[index];
      if (other.kind != PlanBuffer::Kind::Arena) continue;
      if (offset < other.offset + other.bytes && other.offset < offset + bytes) {
        is_written_[index] = false;
      }
    }
  }

  void write(int buffer) {
    const PlanBuffer& target = plan_.buffers[static_cast<size_t>(buffer)];
    if (target.kind == PlanBuffer::Kind::Arena) overwrite(target.offset, target.bytes);
    is_written_[static_cast<size_t>(buffer)] = true;
  }

 private:
  const ExecutionPlan& plan_;
  std::vector<bool> is_written_;
};

bool overlap(const PlanBuffer& left, const PlanBuffer& right) {
  return left.kind == PlanBuffer::Kind::Arena && right.kind == PlanBuffer::Kind::Arena &&
         left.offset < right.offset + right.bytes && right.offset < left.offset + left.bytes;
}

std::string explain_step(const ExecutionPlan& plan, const ExecutionStep& step,
                         const MemoryModel& memory) {
  const auto buffer = [&](int index) -> const PlanBuffer& {
    return plan.buffers[static_cast<size_t>(index)];
  };
  for (const int input : step.inputs) {
    if (!memory.holds(input)) return "reads buffer " + std::to_string(input) + " unwritten";
  }
  for (const PlanOutput& output : step.outputs) {
    const PlanBuffer& target = buffer(output.buffer);
    const std::string name = "buffer " + std::to_string(output.buffer);
    if (target.kind == PlanBuffer::Kind::Input || target.kind == PlanBuffer::Kind::Constant) {
      return "writes to " + name + ", which is not its own";
    }
    int shared = 0;
    for (const int input : step.inputs) shared += overlap(buffer(input), target) ? 1 : 0;
    const bool may_share =
        output.request == TESSERA_REQUEST_IN_PLACE || output.request == TESSERA_REQUEST_ADD;
    if (shared > (may_share ? 1 : 0)) return "writes " + name + " over what it reads";
    if (output.request == TESSERA_REQUEST_IN_PLACE && shared != 1) {
      return "is to write " + name + " in place, but it is nobody's";
    }
    if (output.request == TESSERA_REQUEST_ADD && shared == 0 && !memory.holds(output.buffer)) {
      return "adds to " + name + ", which holds nothing";
    }
    for (const PlanOutput& other : step.outputs) {
      if (&other != &output && overlap(buffer(other.buffer), target)) {
        return "writes two outputs to the same place";
      }
    }
  }
  const PlanBuffer workspace{.kind = PlanBuffer::Kind::Arena,
                             .bytes = step.workspace_bytes,
                             .offset = step.workspace_offset};
  for (const int input : step.inputs) {
    if (overlap(buffer(input), workspace)) return "has a workspace over what it reads";
  }
  for (const PlanOutput& output : step.outputs) {
    if (overlap(buffer(output.buffer), workspace)) return "has a workspace over what it writes";
  }
  return "";
}

}  // namespace

std::string explain_violation(const ExecutionPlan& plan) {
  MemoryModel memory(plan);
  for (size_t index = 0; index < plan.steps.size(); ++index) {
    const ExecutionStep& step = plan.steps[index];
    const std::string wrong = explain_step(plan, step, memory);
    if (!wrong.empty()) return "step " + std::to_string(index) + " " + wrong;
    memory.overwrite(step.workspace_offset, step.workspace_bytes);
    for (const PlanOutput& output : step.outputs) memory.write(output.buffer);
  }
  for (const int result : plan.results) {
    if (!memory.holds(result)) return "result buffer " + std::to_string(result) + " is unwritten";
  }
  return "";
}

}  // namespace tessera
