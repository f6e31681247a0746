// A step that runs one of several plans.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/built_plan.h"
#include "engine/step_program.h"
#include "tessera/backend_abi.h"

namespace tessera {

// The branches of one step, resolved: arguments in the arena of a branch point into the workspace
// of the step, and the inputs and results of a branch point to those of the step. Not thread-safe.
// A run can be stopped only between the steps of the outer plan, not within a branch.
class BranchStep {
 public:
  // The plan that contains `step`, and `branches`, must outlive this object.
  BranchStep(const ExecutionStep& step, const std::vector<BuiltPlan>& branches);
  ~BranchStep();
  BranchStep(const BranchStep&) = delete;
  BranchStep& operator=(const BranchStep&) = delete;

  // A StepCall::run; `self` is the BranchStep. The first input is a bool: if it is true, the first
  // branch runs, otherwise the last.
  static int32_t run(void* self, tessera_run_context* context, const tessera_buffer* inputs,
                     const tessera_buffer* outputs, tessera_error* error);

 private:
  struct Branch;

  std::vector<std::unique_ptr<Branch>> branches_;
};

}  // namespace tessera
