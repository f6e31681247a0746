#include "engine/step_program.h"

#include <algorithm>
#include <cstring>

#include "base/containers/at.h"
#include "base/errors/check.h"
#include "plan/shared_memory.h"

namespace tessera {
namespace {

using Kind = PlanBuffer::Kind;

}  // namespace

struct BranchStep::Branch {
  Branch(const SubPlan& sub, const BuiltPlan& built)
      : plan(built.plan), constants(built.constants), program(built, nullptr, false) {
    for (size_t buffer = 0; buffer < plan.buffers.size(); ++buffer) {
      const MemorySlot* slot = program.find_slot(static_cast<int>(buffer));
      if (slot == nullptr || plan.buffers[buffer].kind != Kind::Input) continue;
      inputs.push_back({slot, at(sub.inputs[at(plan.buffers[buffer].index)])});
    }
    for (size_t result = 0; result < plan.results.size(); ++result) {
      const int owner = owner_of(plan, plan.results[result]);
      if (plan.buffers[at(owner)].kind != Kind::Output) continue;
      const MemorySlot* slot = program.find_slot(owner);
      const bool is_taken = std::any_of(outputs.begin(), outputs.end(),
                                        [&](const Port& port) { return port.slot == slot; });
      if (!is_taken) outputs.push_back({slot, result});
    }
  }

  int32_t run(tessera_run_context* context, const tessera_buffer* given,
              const tessera_buffer* wanted, tessera_error* error) {
    program.move_arena(static_cast<char*>(context->workspace));
    for (const Port& input : inputs) program.point(*input.slot, given[input.position].data);
    for (const Port& output : outputs) program.point(*output.slot, wanted[output.position].data);
    for (const StepCall& call : program.calls()) {
      context->workspace = call.workspace;
      context->workspace_bytes = call.workspace_bytes;
      const int32_t status = call.run(call.self, context, call.inputs, call.outputs, error);
      if (status != TESSERA_OK) return status;
    }
    for (size_t result = 0; result < plan.results.size(); ++result) {
      const void* made = address_of_result(plan.results[result]);
      if (made == wanted[result].data || wanted[result].bytes == 0) continue;
      std::memcpy(wanted[result].data, made, static_cast<size_t>(wanted[result].bytes));
    }
    return TESSERA_OK;
  }

  // The address of a result's elements after all steps have run.
  const void* address_of_result(int index) const {
    const PlanBuffer& buffer = plan.buffers[at(index)];
    if (buffer.kind == Kind::Constant) {
      return static_cast<const char*>(constants[at(buffer.index)].get()) + buffer.offset;
    }
    const MemorySlot* slot = program.find_slot(owner_of(plan, index));
    TESSERA_CHECK(slot != nullptr, "results have memory of their own");
    return static_cast<const char*>(slot->data) + (buffer.owner < 0 ? 0 : buffer.offset);
  }

  // An input or output of the step.
  struct Port {
    const MemorySlot* slot = nullptr;
    size_t position = 0;
  };

  const ExecutionPlan& plan;
  const std::vector<std::shared_ptr<const void>>& constants;
  StepProgram program;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
};

BranchStep::BranchStep(const ExecutionStep& step, const std::vector<BuiltPlan>& branches) {
  TESSERA_CHECK(step.branches.size() == branches.size(), "one built plan for each branch");
  for (size_t index = 0; index < branches.size(); ++index) {
    branches_.push_back(std::make_unique<Branch>(step.branches[index], branches[index]));
  }
}

BranchStep::~BranchStep() = default;

int32_t BranchStep::run(void* self, tessera_run_context* context, const tessera_buffer* inputs,
                        const tessera_buffer* outputs, tessera_error* error) {
  const auto& branches = static_cast<const BranchStep*>(self)->branches_;
  const bool is_true = *static_cast<const bool*>(inputs[0].data);
  return (is_true ? branches.front() : branches.back())->run(context, inputs, outputs, error);
}

}  // namespace tessera
