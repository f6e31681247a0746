#include "plan/execution_plan.h"

#include <algorithm>

#include "base/containers/at.h"

namespace tessera {
namespace {

using Kind = PlanBuffer::Kind;

std::string explain_inputs(const ExecutionPlan& plan, const ExecutionStep& step,
                           const SubPlan& branch) {
  for (const PlanBuffer& buffer : branch.plan.buffers) {
    if (buffer.kind == Kind::Dynamic) return "makes what has no size yet";
    if (buffer.kind != Kind::Input || buffer.owner >= 0) continue;
    const bool is_listed = at(buffer.index) < branch.inputs.size();
    const int input = is_listed ? branch.inputs[at(buffer.index)] : -1;
    if (input < 0 || at(input) >= step.inputs.size()) {
      return "reads input " + std::to_string(buffer.index) + ", which the step does not give it";
    }
    const PlanBuffer& given = plan.buffers[at(step.inputs[at(input)])];
    if (given.bytes != buffer.bytes || !given.strides.empty()) {
      return "reads input " + std::to_string(buffer.index) + " in another form";
    }
  }
  return "";
}

std::string explain_results(const ExecutionPlan& plan, const ExecutionStep& step,
                            const SubPlan& branch) {
  if (branch.plan.results.size() != step.outputs.size()) return "has other results than the step";
  for (size_t index = 0; index < step.outputs.size(); ++index) {
    const PlanBuffer& made = branch.plan.buffers[at(branch.plan.results[index])];
    const PlanBuffer& wanted = plan.buffers[at(step.outputs[index].buffer)];
    const bool is_alike = made.bytes == wanted.bytes && wanted.strides.empty() &&
                          wanted.kind != Kind::Dynamic &&
                          step.outputs[index].request == TESSERA_REQUEST_WRITE;
    if (!is_alike) return "makes result " + std::to_string(index) + " in another form";
  }
  return "";
}

}  // namespace

int64_t workspace_bytes_of(std::span<const SubPlan> branches) {
  int64_t bytes = 0;
  for (const SubPlan& branch : branches) bytes = std::max(bytes, branch.plan.arena_bytes);
  return bytes;
}

std::string explain_branches(const ExecutionPlan& plan, const ExecutionStep& step) {
  const bool has_some = !step.branches.empty();
  if (has_some != (step.kind == ExecutionStep::Kind::Branch)) {
    return has_some ? "has branches, but is no such step" : "has no branch";
  }
  for (size_t index = 0; index < step.branches.size(); ++index) {
    const SubPlan& branch = step.branches[index];
    const std::string name = "has branch " + std::to_string(index) + ", which ";
    std::string wrong = explain_violation(branch.plan);
    if (!wrong.empty()) return name + "is wrong: " + wrong;
    if (branch.plan.arena_bytes > step.workspace_bytes) return name + "exceeds the workspace";
    const bool has_same_threads =
        std::all_of(branch.plan.steps.begin(), branch.plan.steps.end(),
                    [&](const ExecutionStep& inner) { return inner.threads == step.threads; });
    if (!has_same_threads) return name + "runs on other threads than the step";
    wrong = explain_inputs(plan, step, branch);
    if (wrong.empty()) wrong = explain_results(plan, step, branch);
    if (!wrong.empty()) return name + wrong;
  }
  return "";
}

}  // namespace tessera
